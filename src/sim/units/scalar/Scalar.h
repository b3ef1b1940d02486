// Scalar: the parts of the scalar unit, for the table that joins them.
//
// add, mul, min and the like are one opcode for integers and floats: the scalar
// unit's table has them and hands the float types on.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

std::vector<Instruction> scalarIntegerInstructions();
std::vector<Instruction> scalarCarryInstructions();
std::vector<Instruction> scalarLogicInstructions();
std::vector<Instruction> scalarBitInstructions();
std::vector<Instruction> scalarCompareInstructions();
std::vector<Instruction> scalarMoveInstructions();
std::vector<Instruction> scalarVideoInstructions();

/// add, sub, mul and mad with .cc.
void decodeCarry(Decoder &decoder, const ptx::Instruction &instruction, Op &op);

// The float forms of opcodes that integers have too.
void decodeFloatArithmetic(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op);
void decodeFloatDivision(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op);
void decodeFloatMinMax(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op);
void decodeFloatSign(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op);
/// add, sub, mul, fma of f16, bf16 and their pairs.
void decodeHalfArithmetic(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op);

} // namespace kiln::sim
