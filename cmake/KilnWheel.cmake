# KilnWheel: what the Python packages have of a build: the components `wheel`
# (kiln-gpu) and `wheel_compiler` (kiln-gpu-compiler), and a target for each.
#
# The libraries lie in them as they do in an installation, but each under its one
# name that is loaded (a wheel has no symbolic links).
if(NOT BUILD_SHARED_LIBS)
  return()
endif()

function(kiln_wheel component)
  cmake_parse_arguments(arg "" "COMMAND" "LIBRARIES;CUDA" ${ARGN})
  install(TARGETS ${arg_LIBRARIES} LIBRARY DESTINATION lib
    COMPONENT ${component} NAMELINK_SKIP EXCLUDE_FROM_ALL)
  if(arg_CUDA)
    install(TARGETS ${arg_CUDA} LIBRARY DESTINATION lib/${KILN_CUDA_DIR}
      COMPONENT ${component} NAMELINK_SKIP EXCLUDE_FROM_ALL)
  endif()
  install(TARGETS ${arg_COMMAND} RUNTIME DESTINATION bin
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(CODE [[
    file(GLOB links "${CMAKE_INSTALL_PREFIX}/lib/*.so*")
    foreach(link ${links})
      if(IS_SYMLINK ${link})
        file(REAL_PATH ${link} library)
        file(REMOVE ${link})
        file(RENAME ${library} ${link})
      endif()
    endforeach()
  ]] COMPONENT ${component} EXCLUDE_FROM_ALL)
  add_custom_target(${component}
    DEPENDS ${arg_LIBRARIES} ${arg_CUDA} ${arg_COMMAND})
endfunction()

kiln_wheel(wheel COMMAND kiln_cli_light
  LIBRARIES kiln_runtime kiln_sim kiln_c kiln_mlir_runtime
  CUDA kiln_cuda kiln_cudart13 kiln_cudart12 kiln_cuda_driver kiln_jitlink13
    kiln_jitlink12 kiln_nvrtc)
# The package reads the interface from its header.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kiln/c
  DESTINATION include/kiln COMPONENT wheel EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "*.h")

if(TARGET kiln)
  kiln_wheel(wheel_compiler COMMAND kiln_cli LIBRARIES kiln kiln_verify)
endif()
