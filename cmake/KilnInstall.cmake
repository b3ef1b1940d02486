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
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs
  DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET kiln_cli)
  set_target_properties(kiln_cli PROPERTIES
    INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS kiln_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
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
