# kilin_library(NAME [INTERNAL] DEPS folders... LINK targets... PRIVATE_LINK targets...)
#
# One library a folder of src/: every .cpp there but the tests goes into kilin_NAME, and every *_test.cpp into the test program
# NAME_test. DEPS names the folders that this one may use; tests/layering checks the #include lines against the same ladder.
# It is installed with its headers as kilin::NAME, unless it is INTERNAL: part of the program alone. A package that LINK or
# PRIVATE_LINK needs is named in cmake/kilinConfig.cmake.in too.
function(kilin_library NAME)
  cmake_parse_arguments(ARG "INTERNAL" "" "DEPS;LINK;PRIVATE_LINK" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set(TESTS ${SOURCES})
  list(FILTER SOURCES EXCLUDE REGEX "(_test|/main)\\.cpp$")  # main.cpp is a program of the folder
  list(FILTER TESTS INCLUDE REGEX "_test\\.cpp$")
  file(GLOB_RECURSE HEADERS CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)

  add_library(kilin_${NAME} STATIC ${SOURCES})
  set_target_properties(kilin_${NAME} PROPERTIES EXPORT_NAME ${NAME})
  add_library(kilin::${NAME} ALIAS kilin_${NAME})
  # The header set also makes src/ the include folder here, and include/kilin the one after install.
  target_sources(kilin_${NAME} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${HEADERS})
  target_compile_features(kilin_${NAME} PUBLIC cxx_std_20)
  target_link_libraries(kilin_${NAME} PRIVATE $<BUILD_INTERFACE:kilin_flags>)
  foreach(DEP ${ARG_DEPS})
    target_link_libraries(kilin_${NAME} PUBLIC kilin_${DEP})
  endforeach()
  target_link_libraries(kilin_${NAME} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})

  if(NOT ARG_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY KILIN_LIBRARIES kilin_${NAME})
    install(TARGETS kilin_${NAME} EXPORT kilinTargets
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} FILE_SET HEADERS DESTINATION ${KILIN_INSTALL_HEADERS})
  endif()

  if(KILIN_BUILD_TESTS AND TESTS)
    kilin_test(${NAME}_test SOURCES ${TESTS} LINK kilin_${NAME})
  endif()
endfunction()

# kilin_test(NAME SOURCES files... LINK targets...): a GoogleTest program whose cases ctest runs one by one.
function(kilin_test NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LINK} kilin_test_support kilin_flags GTest::gtest GTest::gtest_main)
  # Tests are many, their optimisation dear, and what they hold to account is in the libraries.
  target_compile_options(${NAME} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NAME STREQUAL "support_test")
    target_precompile_headers(support_test PRIVATE <gtest/gtest.h>)
  else()  # GoogleTest's header is read once for all programs
    target_precompile_headers(${NAME} REUSE_FROM support_test)
  endif()
  gtest_discover_tests(${NAME} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
endfunction()
