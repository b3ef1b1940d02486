// Units: the tables of all units, and what they lend each other.
#pragma once

#include "sim/program/InstructionSet.h"

namespace kiln::sim {

/// Every unit offers its table.
std::vector<Instruction> scalarInstructions();
std::vector<Instruction> floatInstructions();
std::vector<Instruction> conversionInstructions();
std::vector<Instruction> memoryInstructions();
std::vector<Instruction> addressInstructions(); ///< cvta, mapa, ...
std::vector<Instruction> controlInstructions();
std::vector<Instruction> warpInstructions();    ///< shfl, vote, elect, ...
std::vector<Instruction> barrierInstructions(); ///< bar, barrier, fence, membar
std::vector<Instruction> mbarrierInstructions();
std::vector<Instruction> tmaInstructions();   ///< cp.async..., prefetch
std::vector<Instruction> wgmmaInstructions(); ///< and setmaxnreg
std::vector<Instruction> tcgen05Instructions();
std::vector<Instruction> matrixInstructions(); ///< mma, wmma, ldmatrix, ...

/// Calls of functions that the driver implements: vprintf,
/// __assertfail, malloc and free.
bool isSystemFunction(const std::string &name);
void decodeSystemCall(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op);
/// call and ret, of the table of control instructions.
void decodeCall(Decoder &decoder, const ptx::Instruction &instruction, Op &op);
void decodeReturn(Decoder &decoder, const ptx::Instruction &instruction,
                  Op &op);
/// griddepcontrol, likewise.
void decodeGridControl(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op);
void gridControlEffect(Decoder &decoder, const ptx::Instruction &instruction,
                       Effect &effect);

/// bar.warp.sync, which shares its opcode with the barriers of a CTA.
void decodeWarpBarrier(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op);

/// ld, st, atom and red, which multimem does on one device.
void decodeLoad(Decoder &decoder, const ptx::Instruction &instruction, Op &op);
void decodeStore(Decoder &decoder, const ptx::Instruction &instruction, Op &op);
void decodeAtomic(Decoder &decoder, const ptx::Instruction &instruction,
                  Op &op);
/// st.bulk, of the table of memory instructions.
void decodeBulkStore(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op);
std::vector<Instruction> multimemInstructions();
/// alloca, stacksave and stackrestore.
std::vector<Instruction> stackInstructions();
/// atom and red of halves, vectors and 128 bits.
bool isPackedAtomic(const ptx::Instruction &instruction, ptx::ScalarType type);
void decodePackedAtomic(Decoder &decoder, const ptx::Instruction &instruction,
                        ptx::ScalarType type, Op &op);
/// tensormap, of the table of TMA instructions.
void decodeTensorMap(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op);
/// wmma, of the table of matrix instructions.
void decodeWmma(Decoder &decoder, const ptx::Instruction &instruction, Op &op);

/// All of them.
const InstructionSet &instructionSet();

} // namespace kiln::sim
