# KilnWheel: what the Python package has of a build: the component `wheel`.
#
# The libraries lie in it as they do in an installation, but each under its one
# name that is loaded (a wheel has no symbolic links).
set(wheel_libraries kiln_runtime kiln_sim kiln_c kiln_mlir_runtime)
set(wheel_cuda kiln_cuda kiln_cudart13 kiln_cudart12 kiln_cuda_driver)

if(NOT BUILD_SHARED_LIBS)
  return()
endif()
install(TARGETS ${wheel_libraries} LIBRARY DESTINATION lib
  COMPONENT wheel NAMELINK_SKIP EXCLUDE_FROM_ALL)
install(TARGETS ${wheel_cuda} LIBRARY DESTINATION lib/${KILN_CUDA_DIR}
  COMPONENT wheel NAMELINK_SKIP EXCLUDE_FROM_ALL)
install(TARGETS kiln_cli_light RUNTIME DESTINATION bin
  COMPONENT wheel EXCLUDE_FROM_ALL)
add_custom_target(wheel DEPENDS ${wheel_libraries} ${wheel_cuda} kiln_cli_light)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kiln/c
  DESTINATION include/kiln COMPONENT wheel EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "*.h")
install(CODE [[
  file(GLOB links "${CMAKE_INSTALL_PREFIX}/lib/*.so*")
  foreach(link ${links})
    if(IS_SYMLINK ${link})
      file(REAL_PATH ${link} library)
      file(REMOVE ${link})
      file(RENAME ${library} ${link})
    endif()
  endforeach()
]] COMPONENT wheel EXCLUDE_FROM_ALL)
