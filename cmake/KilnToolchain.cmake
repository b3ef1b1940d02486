# KilnToolchain: how every target is compiled, and the faster tools where they
# are found.

# A second build of the same sources should cost seconds: ccache, told that a
# precompiled header is an input like any other.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${CCACHE_PROGRAM})
endif()

# Linking against LLVM's static archives takes ten times as long with bfd.
find_program(LLD_PROGRAM NAMES ld.lld-22 ld.lld)
if(LLD_PROGRAM)
  add_link_options(-fuse-ld=lld -B${PROJECT_BINARY_DIR}/linker)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/linker)
  file(CREATE_LINK ${LLD_PROGRAM} ${PROJECT_BINARY_DIR}/linker/ld.lld SYMBOLIC)
endif()

# What runs once per instruction or per launch is worth -O3 and asks for it;
# what runs once per command is compiled as fast as the compiler can, since it
# is compiled more often than anybody could win by it: kiln_brisk.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
add_library(kiln_brisk INTERFACE)
target_compile_options(kiln_brisk INTERFACE $<$<CONFIG:Release>:-O1>)

# What every Kiln target is compiled with.
add_library(kiln_flags INTERFACE)
target_compile_options(kiln_flags INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
  # Paths in .loc, assertions and error messages are relative to the project.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
  $<$<BOOL:${KILN_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION
   VERSION_LESS 13)
  # GCC 12 sees overlapping and endless copies in "text" + std::string(), and
  # values that nobody wrote in every std::optional it inlines.
  target_compile_options(kiln_flags INTERFACE
    -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
    -Wno-maybe-uninitialized)
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # a * b + c is rounded twice, as it is written; plain x86 knows nothing else.
  target_compile_options(kiln_flags INTERFACE -ffp-contract=off)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own stable_sort uses what it deprecates.
  target_compile_options(kiln_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Asan")
  # CUDA's functions are called as CUDA declares them; ours have types of our
  # own behind the same pointers, and only clang compares them.
  target_compile_options(kiln_flags INTERFACE
    -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_options(kiln_flags INTERFACE -fsanitize=address,undefined)
elseif(CMAKE_BUILD_TYPE STREQUAL "Fuzz")
  # A service that fuzzes projects brings its own sanitizers and its own engine.
  set(KILN_FUZZ_FLAGS "-fsanitize=address,undefined,fuzzer-no-link"
    CACHE STRING "What the fuzz targets and what they test are compiled with")
  set(KILN_FUZZ_ENGINE "-fsanitize=fuzzer"
    CACHE STRING "What the fuzz targets are linked with")
  separate_arguments(fuzz_flags UNIX_COMMAND "${KILN_FUZZ_FLAGS}")
  target_compile_options(kiln_flags INTERFACE
    -O1 -gline-tables-only ${fuzz_flags} -fno-omit-frame-pointer
    -fno-sanitize-recover=undefined -fno-sanitize=function)
  target_link_options(kiln_flags INTERFACE ${fuzz_flags})
elseif(CMAKE_BUILD_TYPE STREQUAL "Tsan")
  target_compile_options(kiln_flags INTERFACE -O1 -g -fsanitize=thread)
  target_link_options(kiln_flags INTERFACE -fsanitize=thread)
endif()
