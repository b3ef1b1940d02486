# KilnMlir: find LLVM and MLIR 22 and offer them as one target, kiln_mlir.
#
# Shared by default, so that a link takes a second; static for the executable
# that must run where no LLVM is installed.
list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(MLIR 22.1 CONFIG REQUIRED)

add_library(kiln_mlir INTERFACE)
target_include_directories(kiln_mlir SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(kiln_mlir INTERFACE ${llvm_definitions})

if(NOT KILN_STATIC_LLVM)
  target_link_libraries(kiln_mlir INTERFACE MLIR LLVM)
  return()
endif()

# What src/lower/Lowering.cpp calls; the rest follows from the libraries' own
# dependencies, and what nobody calls is dropped by the linker.
target_link_libraries(kiln_mlir INTERFACE
  MLIRIR MLIRParser MLIRPass MLIRTransforms
  MLIRArithDialect MLIRControlFlowDialect MLIRFuncDialect MLIRGPUDialect
  MLIRIndexDialect MLIRLLVMDialect MLIRMathDialect MLIRMemRefDialect
  MLIRNVGPUDialect MLIRNVVMDialect MLIRSCFDialect MLIRVectorDialect
  MLIRArithToLLVM MLIRControlFlowToLLVM MLIRFuncToLLVM MLIRGPUToNVVMTransforms
  MLIRIndexToLLVM MLIRMathToLLVM MLIRMemRefToLLVM MLIRNVGPUToNVVM
  MLIRNVVMToLLVM MLIRSCFToControlFlow MLIRVectorToLLVMPass MLIRVectorToSCF
  MLIRAffineToStandard MLIRAffineDialect MLIRMemRefTransforms
  MLIRReconcileUnrealizedCasts MLIRLLVMIRTransforms MLIRUBToLLVM MLIRUBDialect
  MLIRTargetLLVMIRExport MLIRBuiltinToLLVMIRTranslation
  MLIRGPUToLLVMIRTranslation MLIRLLVMToLLVMIRTranslation
  MLIRNVVMToLLVMIRTranslation
  LLVMNVPTXCodeGen LLVMNVPTXDesc LLVMNVPTXInfo LLVMPasses LLVMTarget)
target_link_options(kiln_mlir INTERFACE
  -Wl,--gc-sections,--as-needed,-O2,--icf=all)
if(BUILD_SHARED_LIBS)
  # Another LLVM in the same process is none of ours.
  target_link_options(kiln_mlir INTERFACE -Wl,--exclude-libs,ALL)
else()
  target_link_options(kiln_mlir INTERFACE -static-libstdc++ -static-libgcc)
endif()

# Debian's MLIR archives name the shared LLVM as what they need: let them need
# the archives instead, and those the archives of zlib and zstd.
add_library(kiln_llvm INTERFACE)
target_link_libraries(kiln_llvm INTERFACE
  LLVMNVPTXCodeGen LLVMPasses LLVMTarget LLVMCore LLVMSupport)
foreach(target IN LISTS MLIR_EXPORTED_TARGETS LLVM_AVAILABLE_LIBS)
  if(NOT TARGET ${target})
    continue()
  endif()
  get_target_property(needs ${target} INTERFACE_LINK_LIBRARIES)
  if(NOT needs)
    continue()
  endif()
  list(TRANSFORM needs REPLACE "^LLVM$" kiln_llvm)
  list(TRANSFORM needs REPLACE "^ZLIB::ZLIB$" libz.a)
  list(TRANSFORM needs REPLACE "^zstd::libzstd_shared$" libzstd.a)
  set_target_properties(${target} PROPERTIES
    INTERFACE_LINK_LIBRARIES "${needs}")
endforeach()
