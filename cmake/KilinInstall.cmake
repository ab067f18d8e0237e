# What `cmake --install` gives beside the program and the libraries: the umbrella target, the package for find_package(kilin),
# the embedded model. The build tree has the same shape, so that the program finds the model by ../share from its own place.
include(CMakePackageConfigHelpers)

# kilin::kilin: every library, and the header that includes what users need.
function(kilin_install_package)
  get_property(LIBRARIES GLOBAL PROPERTY KILIN_LIBRARIES)
  add_library(kilin_umbrella INTERFACE)
  add_library(kilin::kilin ALIAS kilin_umbrella)
  set_target_properties(kilin_umbrella PROPERTIES EXPORT_NAME kilin)
  target_link_libraries(kilin_umbrella INTERFACE ${LIBRARIES})
  target_sources(kilin_umbrella INTERFACE
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${PROJECT_SOURCE_DIR}/src/kilin.h)
  # Users write <kilin/kilin.h>; the headers themselves write "core/error.h".
  target_include_directories(kilin_umbrella INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS kilin_umbrella EXPORT kilinTargets FILE_SET HEADERS DESTINATION ${KILIN_INSTALL_HEADERS})

  set(PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/kilin)
  install(EXPORT kilinTargets NAMESPACE kilin:: DESTINATION ${PACKAGE})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kilinConfig.cmake.in ${PROJECT_BINARY_DIR}/kilinConfig.cmake
    INSTALL_DESTINATION ${PACKAGE} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/kilinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/kilinConfig.cmake ${PROJECT_BINARY_DIR}/kilinConfigVersion.cmake DESTINATION ${PACKAGE})
endfunction()

function(kilin_install_model NAME)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/kilin/models)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/models/${NAME} ${PROJECT_BINARY_DIR}/share/kilin/models/${NAME} SYMBOLIC)
  install(DIRECTORY models/${NAME} DESTINATION share/kilin/models
    PATTERN "expected*" EXCLUDE PATTERN "eval.txt" EXCLUDE)  # data of tests
endfunction()
