# Compiler settings that hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(KILIN_CCACHE ccache)
if(KILIN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header's time stamp would spoil every hit, and the build folder's path is no part of what is compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${KILIN_CCACHE})
endif()

add_library(kilin_flags INTERFACE)
target_compile_options(kilin_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast -Wcast-qual -Werror
  # The same sums on every compiler: a fused multiply-add stands only where the code says so.
  -ffp-contract=off
  -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Vectors wider than the baseline never cross a translation unit, so their calling convention does not matter.
  target_compile_options(kilin_flags INTERFACE -Wno-psabi)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(kilin_flags INTERFACE -Wthread-safety)  # what core/mutex.h says of locks is checked
endif()
if(KILIN_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 sees through instrumented code badly and blames the standard library; the other builds keep the warning.
    target_compile_options(kilin_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND KILIN_SANITIZE MATCHES "address")
    # What AddressSanitizer sees anyway is not checked twice, and its checks are calls: the kernels compile in a third of the
    # time, which the tests do not lose again.
    set(KILIN_SANITIZE_LESS -fno-sanitize=null,vptr,object-size --param=asan-instrumentation-with-call-threshold=0)
  endif()
  target_compile_options(kilin_flags INTERFACE -fsanitize=${KILIN_SANITIZE} ${KILIN_SANITIZE_LESS} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(kilin_flags INTERFACE -fsanitize=${KILIN_SANITIZE})
endif()
