# KilnInstall: what `cmake --install` puts where, so that another project says
# find_package(kiln) and links kiln::kiln, kiln::kiln_sim, kiln::kiln_verify or
# kiln::kiln_runtime.
#
# None of them needs MLIR or LLVM to be found by that project: MLIR is a private
# matter of the shared library kiln. A static kiln would hand all of it on, so
# it is not installed; the self-contained command is what that build is for.
include(CMakePackageConfigHelpers)

set(installed_targets kiln_runtime kiln_verify kiln_sim)
if(TARGET kiln AND BUILD_SHARED_LIBS)
  list(APPEND installed_targets kiln)
  # Where MLIR was found is where it is loaded from.
  set_target_properties(kiln PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
set_target_properties(${installed_targets} PROPERTIES
  INSTALL_RPATH "\$ORIGIN" VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS ${installed_targets} EXPORT kilnTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kiln
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# The pages, and what they link to. A link into the sources becomes its text.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/tutorial
  DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING
  REGEX "\\.(md|png|json|cu|c|cpp|yml|ptx)$|/make_pictures$"
  PATTERN site EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/results
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(CODE "set(docs \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")")
install(CODE [[
  file(GLOB_RECURSE pages "${docs}/*.md")
  foreach(page IN LISTS pages)
    file(READ "${page}" text)
    string(REGEX REPLACE
      "\\[([^]\n]*)\\]\\((\\.\\./)*(src|tests|include|scripts|python|cmake|editors|\\.github)/[^)\n]*\\)"
      "\\1" text "${text}")
    file(WRITE "${page}" "${text}")
  endforeach()
]])
if(TARGET kiln_cli)
  set_target_properties(kiln_cli PROPERTIES
    INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS kiln_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # The manual pages are what the commands declare, written by the command.
  install(CODE "execute_process(COMMAND $<TARGET_FILE:kiln_cli>
    --man-pages=${PROJECT_BINARY_DIR}/man COMMAND_ERROR_IS_FATAL ANY)")
  install(DIRECTORY ${PROJECT_BINARY_DIR}/man/
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/kilnConfig.cmake.in
  ${PROJECT_BINARY_DIR}/kilnConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kilnConfig.cmake
  ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake DESTINATION ${package_dir})

# `make package` (preset package): a .deb that needs the C and C++ libraries and
# nothing of LLVM.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_CONTACT "The authors of Kiln <kiln@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tile programs in C++ to tensor-core kernels")
set(CPACK_PACKAGE_DESCRIPTION
"Kiln compiles tile programs written in C++ to PTX for NVIDIA GPUs and runs them
there, or on a simulator that executes PTX on the CPU and finds races, deadlocks
and bytes that nobody wrote. It runs CUDA and MLIR programs the same way.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/kiln/cuda)
# For programs that are built against the libraries.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
