# KilnUnity: the files of a folder compiled several at a time.
#
# Most of what a compiler does with a file of Kiln is reading headers. With
# KILN_UNITY the release build reads them once for `batch` neighbours; a build
# without it (dev, and the sanitizers) sees every file alone, as an editor does,
# and finds what a file forgot to include. Files of one folder must therefore
# not give two things in a namespace the same name, also not `static` ones.
option(KILN_UNITY "Compile several files of a folder at a time" OFF)

function(kiln_unity target)
  if(NOT KILN_UNITY)
    return()
  endif()
  cmake_parse_arguments(arg "" "BATCH" "" ${ARGN})
  if(NOT arg_BATCH)
    set(arg_BATCH 8)
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    get_source_file_property(group ${source} TARGET_DIRECTORY ${target} UNITY_GROUP)
    if(group)
      continue()
    endif()
    file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${source})
    cmake_path(GET room PARENT_PATH room)
    string(MAKE_C_IDENTIFIER "${room}" room)
    math(EXPR batch "0${count_${room}} / ${arg_BATCH}" OUTPUT_FORMAT DECIMAL)
    math(EXPR count_${room} "${count_${room}} + 1")
    set_source_files_properties(${source} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP ${room}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
