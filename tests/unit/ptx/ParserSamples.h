// ParserSamples: small modules in the manner of the compilers Kiln reads, for
// the parser's tests and as the seeds of its fuzzer.
#pragma once

#include <string_view>

namespace kiln::ptx {

/// nvcc: printf, a constant table, a switch, calls through a pointer.
inline constexpr std::string_view kNvccSample = R"(
.version 9.0
.target sm_90a, debug
.address_size 64
	// .globl	k
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.func helper(.param .b32 helper_param_0) .noreturn;
.const .align 4 .b8 tab[24] = {0, 0, 128, 63, 0, 0, 0, 64};
.const .align 4 .f32 grid[2][3] = {{0f3F800000, 2}, {-1.5}};
.global .align 4 .u32 gi = 5;
.global .align 8 .u64 s[3] = {97, generic(gi)+8, helper};
.global .align 1 .b8 bytes[] = {0xFF(gi), 0xFF00(generic(gi)), 104, 0};
.visible .entry k(
	.param .u64 .ptr .global .align 1 k_param_0,
	.param .align 64 .b8 k_param_1[128]
)
.maxntid 128
.minnctapersm 2
{
	.local .align 16 .b8 	__local_depot0[16];
	.reg .pred 	%p<3>;
	.reg .b32 	%r<9>;
	.reg .f32 	%f<3>;
	.reg .b64 	%rd<5>;
	.shared .align 4 .b8 sm[512];
$L__func_begin0:
	.loc	1 12 5
	mov.u64 	%rd1, __local_depot0;
	ld.param.u64 	%rd2, [k_param_0];
	mov.u32 	%r1, %tid.x;
	.loc	2 90 3, function_name $L__info_string0, inlined_at 1 41 7
	st.shared.u32 	[sm+4], %r1;
	.loc	1 0 0
	ld.global.v4.u32 	{%r2, _, %r3, %r4}, [%rd2+-16];
	setp.eq.s32 	%p1|%p2, %r1, 0x1F, !%p1;
	neg.f32 	%f1, -%f2;
	$L_brx_0: .branchtargets
		$L__BB0_1,
		$L__BB0_2;
	@!%p1 brx.idx 	%r1, $L_brx_0;
$L__BB0_1:
	{ // callseq 0, 0
	.reg .b32 temp_param_reg;
	.param .b64 param0;
	st.param.b64 	[param0+0], %rd1;
	.param .b32 retval0;
	call.uni (retval0),
	vprintf,
	(
	param0,
	param0
	);
	ld.param.b32 	%r5, [retval0+0];
	} // callseq 0
	{
	.param .b32 param0;
	.param .b32 retval0;
	prototype_1 : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (retval0),
	%rd3,
	(param0), prototype_1;
	}
	.pragma "nounroll";
	@%p2 bra.uni 	$L__BB0_1;
$L__BB0_2:
	call helper, (%r1);
	ret;
$L__func_end0:
}
.func (.reg .b32 %out) twice(.reg .b32 %in)
{ add.s32 %out, %in, %in; ret; }
.file 1 "/src/k.cu", 1700000000, 4242
.file 2 "device.h"
.section .debug_str
{
$L__info_string0:
.b8 107
.b32 .debug_abbrev
.b64 $L__func_end0-$L__func_begin0
}
)";

/// Inline assembly of Hopper kernels: scopes that repeat names and labels.
inline constexpr std::string_view kHopperSample = R"(
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry h(.param .align 64 .b8 map[128])
.reqntid 256, 1, 1
.explicitcluster
.reqnctapercluster 2, 1, 1
{
	.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<5>;
	mov.b64 %rd4, map;
	elect.sync _|%p2, -1;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [smem+1024], [%rd4, {%r1, 64}], [%r2], 0x1000000000000000;
	// begin inline asm
	{
	.reg .pred P1;
	LAB_WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 P1, [%r2], %r3;
	@P1 bra DONE;
	bra LAB_WAIT;
	DONE:
	}
	// end inline asm
	{
	.reg .pred P1;
	LAB_WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 P1, [smem+8], 1;
	@P1 bra DONE;
	bra LAB_WAIT;
	DONE:
	}
	{
	.reg .pred p;
	setp.ne.b32 p, %r5, 0;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, p, 1, 1, 0, 1;
	}
	mov.b64 {%r1, %r2}, %rd1; /* halves */
	ret;
}
)";

} // namespace kiln::ptx
