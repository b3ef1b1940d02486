// outline: what an entry does with its parameters tells what they are.
#include <kiln/base/error.h>
#include <kiln/check/outline.h>

#include <gtest/gtest.h>

namespace kiln {

using Kind = PtxField::Kind;

static PtxEntry outlineOf(const std::string &parameters,
                          const std::string &body,
                          const std::string &directives = "") {
  auto entries = outline(".version 8.3\n.target sm_90a\n.address_size 64\n"
                         ".extern .shared .align 16 .b8 pool[];\n"
                         ".visible .entry k(" +
                         parameters + ")\n" + directives +
                         "{\n.reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 "
                         "%r<16>; .reg .b64 %rd<16>; .reg .f32 %f<8>;\n" +
                         body + "ret;\n}\n");
  EXPECT_EQ(entries.size(), 1u);
  return entries.at(0);
}

TEST(Outline, tellsAPointerFromAStride) {
  PtxEntry entry = outlineOf(".param .u64 p, .param .u64 stride", R"(
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [stride];
    cvta.to.global.u64 %rd3, %rd1;
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %rd4, %r1;
    mul.lo.s64 %rd5, %rd4, %rd2;
    add.s64 %rd6, %rd3, %rd5;
    ld.global.nc.v2.f32 {%f1, %f2}, [%rd6+8];
)");
  const PtxField &p = entry.parameters[0].fields.at(0);
  EXPECT_EQ(p.kind, Kind::pointer);
  EXPECT_EQ(p.type, Type::f32);
  EXPECT_TRUE(p.is_read && !p.is_written && !p.is_type_guessed);
  const PtxField &stride = entry.parameters[1].fields.at(0);
  EXPECT_EQ(stride.kind, Kind::number);
  EXPECT_EQ(stride.type, Type::u64);
  EXPECT_EQ(entry.block[0], 0u);
  EXPECT_TRUE(entry.dynamic_smem.empty()) << "pool is not used";
}

TEST(Outline, followsAPointerRoundALoop) {
  PtxEntry entry = outlineOf(".param .u64 p", R"(
    ld.param.u64 %rd1, [p];
    bra check;
  again:
    st.global.b16 [%rd3], %h1;
  check:
    mov.u64 %rd2, %rd1;
    mov.u64 %rd3, %rd2;
    setp.ne.u64 %p1, %rd2, 0;
    fma.rn.bf16 %h1, %h1, %h1, %h1;
    @%p1 bra again;
)");
  const PtxField &p = entry.parameters[0].fields.at(0);
  EXPECT_EQ(p.kind, Kind::pointer);
  EXPECT_TRUE(p.is_written && !p.is_read && p.is_type_guessed);
  EXPECT_EQ(p.type, Type::bf16) << "16 bits, in a kernel that has bf16";
}

TEST(Outline, hasTheFieldsOfAStruct) {
  PtxEntry entry = outlineOf(".param .align 64 .b8 s[320]", R"(
    ld.param.v2.u32 {%r1, %r2}, [s+8];
    ld.param.u64 %rd1, [s];
    red.global.add.u32 [%rd1], %r1;
    mov.b64 %rd2, s;
    cvta.param.u64 %rd3, %rd2;
    add.s64 %rd4, %rd3, 128;
    mov.u32 %r3, pool;
    cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd4, {%r1, %r1, %r1}], [%r3];
)",
                             ".maxntid 96\n");
  const PtxParameter &s = entry.parameters[0];
  EXPECT_TRUE(s.is_struct && !s.is_indexed);
  ASSERT_EQ(s.fields.size(), 4u);
  EXPECT_EQ(s.fields[0].kind, Kind::pointer);
  EXPECT_TRUE(s.fields[0].is_written);
  EXPECT_EQ(s.fields[1].offset, 8u);
  EXPECT_EQ(s.fields[2].offset, 12u);
  EXPECT_EQ(s.fields[3].kind, Kind::tensor_map);
  EXPECT_EQ(s.fields[3].offset, 128u);
  EXPECT_EQ(s.fields[3].rank, 3);
  EXPECT_EQ(entry.block, (std::array<std::uint32_t, 3>{96, 1, 1}));
  EXPECT_FALSE(entry.is_block_required);
  EXPECT_EQ(entry.dynamic_smem, std::vector<std::string>{"pool"});
}

TEST(Outline, saysWhereAStructIsReadAtComputedPlaces) {
  PtxEntry entry = outlineOf(".param .align 8 .b8 s[64]", R"(
    mov.b64 %rd1, s;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 8;
    add.s64 %rd3, %rd1, %rd2;
    ld.param.u64 %rd4, [%rd3];
)");
  EXPECT_TRUE(entry.parameters[0].is_indexed);
}

TEST(Outline, keepsWhatIsNeverRead) {
  PtxEntry entry = outlineOf(
      ".param .f32 x, .param .align 64 .b8 m[128], .param .b8 flag", "");
  EXPECT_EQ(entry.parameters[0].fields.at(0).type, Type::f32);
  EXPECT_EQ(entry.parameters[1].fields.at(0).kind, Kind::tensor_map);
  EXPECT_FALSE(entry.parameters[1].is_struct);
  EXPECT_EQ(entry.parameters[2].fields.at(0).type, Type::u8);
}

TEST(Outline, takesAPrefetchForARead) {
  PtxEntry entry =
      outlineOf(".param .align 64 .b8 a[128], .param .align 64 .b8 d[128]", R"(
    mov.b64 %rd1, a;
    prefetch.tensormap [%rd1];
    cp.async.bulk.prefetch.tensor.2d.L2.global.tile [a, {%r1, %r1}];
    mov.b64 %rd2, d;
    mov.u32 %r3, pool;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r1, %r1}], [%r3];
)");
  ASSERT_EQ(entry.parameters[0].fields.size(), 1u);
  EXPECT_EQ(entry.parameters[0].fields[0].kind, Kind::tensor_map);
  EXPECT_EQ(entry.parameters[0].fields[0].rank, 2);
  EXPECT_FALSE(entry.parameters[0].fields[0].is_written);
  EXPECT_TRUE(entry.parameters[1].fields.at(0).is_written);
}

TEST(Outline, followsCopiesAndMatrices) {
  PtxEntry entry = outlineOf(
      ".param .u64 in, .param .u64 out, .param .u64 a, .param .u64 d", R"(
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    ld.param.u64 %rd3, [a];
    ld.param.u64 %rd4, [d];
    mov.u32 %r3, pool;
    cp.async.ca.shared.global [%r3], [%rd1], 16;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r3], %r1;
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r4, %r5, %r6, %r7, %r8, %r9}, [%rd3], %r3;
    wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd4], {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1}, %r3;
)");
  auto field = [&](int i) { return entry.parameters[i].fields.at(0); };
  for (int i : {0, 2})
    EXPECT_TRUE(field(i).is_read && !field(i).is_written) << i;
  for (int i : {1, 3})
    EXPECT_TRUE(field(i).is_written && !field(i).is_read) << i;
  EXPECT_EQ(field(1).type, Type::u32);
  EXPECT_EQ(field(2).type, Type::f16);
  EXPECT_EQ(field(3).type, Type::f32);
}

TEST(Outline, takesWhatNoUnitExecutesForARead) {
  PtxEntry entry = outlineOf(".param .u64 p", R"(
    ld.param.u64 %rd1, [p];
    multimem.ld_reduce.relaxed.gpu.global.add.f32 %f1, [%rd1];
)");
  const PtxField &p = entry.parameters[0].fields.at(0);
  EXPECT_EQ(p.kind, Kind::pointer);
  EXPECT_EQ(p.type, Type::f32);
  EXPECT_TRUE(p.is_read && !p.is_written);
}

TEST(Outline, refusesWhatDoesNotParse) {
  EXPECT_THROW(outline("no PTX"), UserError);
  EXPECT_TRUE(outline(".version 8.3\n.target sm_90a\n").empty());
}

} // namespace kiln
