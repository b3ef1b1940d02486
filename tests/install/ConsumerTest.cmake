# ConsumerTest: install into a fresh folder, build a project against it, and
# run what came out.
#
# MLIR and LLVM are hidden from that project, so that needing them is an error.
# BUILD_DIR, CONSUMER_DIR, WORK_DIR, VERSION, HAS_COMPILER, CXX and CXX_FLAGS
# come from the command line.
set(prefix ${WORK_DIR}/prefix)
set(build ${WORK_DIR}/build)
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})

# Run a command; its output in `output`, or the test fails with it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nexited with ${status}:\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

# Fail unless `output` is the text.
function(expect text)
  string(STRIP "${output}" found)
  if(NOT found STREQUAL text)
    message(FATAL_ERROR "expected \"${text}\", found \"${found}\"")
  endif()
endfunction()

# Configure the consumer with more arguments.
macro(configure)
  run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${build} -G Ninja
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
    -D CMAKE_DISABLE_FIND_PACKAGE_MLIR=ON -D CMAKE_DISABLE_FIND_PACKAGE_LLVM=ON
    -D KILN_VERSION=${VERSION} ${ARGN})
endmacro()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
if(EXISTS ${prefix}/bin/kiln)
  run(${prefix}/bin/kiln --version)
endif()

if(NOT EXISTS ${prefix}/share/doc/kiln/docs/language.md)
  message(FATAL_ERROR "the documentation is not installed")
endif()
# With all that its pages link to.
run(${CMAKE_CURRENT_LIST_DIR}/../docs/check_links ${prefix}/share/doc/kiln)

# MLIR's runtime finds Kiln's libraries where they were installed, and needs no
# MLIR.
file(GLOB mlir_runtime ${prefix}/lib*/libkiln_mlir_runtime.so
  ${prefix}/lib*/*/libkiln_mlir_runtime.so)
if(NOT mlir_runtime)
  message(FATAL_ERROR "libkiln_mlir_runtime.so is not installed")
endif()
run(ldd ${mlir_runtime})
if(output MATCHES "not found|libLLVM|libMLIR")
  message(FATAL_ERROR "libkiln_mlir_runtime.so needs:\n${output}")
endif()

# The runtime alone: a kernel goes to a file and comes back.
configure(-D COMPONENT=kiln_runtime)
run(${CMAKE_COMMAND} --build ${build})
run(${build}/write_kernel ${WORK_DIR}/written.kiln)
run(${build}/read_kernel ${WORK_DIR}/written.kiln)
expect("written_by_hand sm_90a 32 threads")
run(ldd ${build}/read_kernel)
if(output MATCHES "libLLVM|libMLIR|libkiln\\.so")
  message(FATAL_ERROR "read_kernel links a compiler:\n${output}")
endif()
if(NOT output MATCHES "${prefix}/[^ ]*libkiln_runtime\\.so" AND
   EXISTS ${prefix}/lib/libkiln_runtime.so)
  message(FATAL_ERROR "read_kernel uses another libkiln_runtime:\n${output}")
endif()

# Everything: a kernel is built, saved, and read without the compiler.
if(HAS_COMPILER)
  configure(-D COMPONENT=kiln)
  run(${CMAKE_COMMAND} --build ${build})
  run(${build}/build_kernel ${WORK_DIR}/built.kiln)
  expect(".visible .entry k(")
  run(${build}/read_kernel ${WORK_DIR}/built.kiln)
  expect("k sm_90a 32 threads")
  return()
endif()

# Without the compiler, asking for it is refused with a sentence.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${build}
  -D COMPONENT=kiln ERROR_VARIABLE text OUTPUT_QUIET RESULT_VARIABLE status)
string(REGEX REPLACE "[ \n]+" " " text "${text}")
if(status EQUAL 0 OR NOT text MATCHES "This Kiln has no component kiln;")
  message(FATAL_ERROR "asking for kiln came to ${status}:\n${text}")
endif()
