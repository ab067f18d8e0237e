# Installs into a fresh prefix, then configures, builds and runs examples/ against that package alone.
set(PREFIX ${BUILD}/install-test/prefix)
set(EXAMPLES ${BUILD}/install-test/examples)
file(REMOVE_RECURSE ${BUILD}/install-test)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE STATUS OUTPUT_VARIABLE OUTPUT ERROR_VARIABLE OUTPUT)
  if(NOT STATUS EQUAL 0)
    message(FATAL_ERROR "failed (${STATUS}): ${ARGN}\n${OUTPUT}")
  endif()
  set(OUTPUT "${OUTPUT}" PARENT_SCOPE)
endfunction()

function(expect PATTERN)
  if(NOT OUTPUT MATCHES "${PATTERN}")
    message(FATAL_ERROR "expected '${PATTERN}' in:\n${OUTPUT}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
foreach(FILE share/kilin/models/tiny/config.json share/kilin/models/tiny/model.safetensors include/kilin/kilin.h)
  if(NOT EXISTS ${PREFIX}/${FILE})
    message(FATAL_ERROR "not installed: ${FILE}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${EXAMPLES} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${EXAMPLES})
run(${EXAMPLES}/machine)
expect("Kilin [0-9]+\\.[0-9]+\\.[0-9]+ on ")
