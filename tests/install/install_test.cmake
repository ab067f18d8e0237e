# Installs into a fresh prefix, runs the installed program, then builds and runs examples/ against that package alone.
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

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})

# The installed program finds the installed model.
run(${PREFIX}/bin/kilin generate -n 4 --json)

run(${CMAKE_COMMAND} -S ${SOURCE}/examples -B ${EXAMPLES} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${EXAMPLES})

# The example writes what the reference writes. A prompt without semicolons, which CMake takes for lists.
file(READ ${SOURCE}/models/tiny/expected.json EXPECTED)
string(JSON PROMPT GET "${EXPECTED}" greedy 2 prompt)
string(JSON TEXT GET "${EXPECTED}" greedy 2 text)
string(JSON TOKENS LENGTH "${EXPECTED}" greedy 2 ids)
run(${EXAMPLES}/generate ${PREFIX}/share/kilin/models/tiny ${PROMPT} ${TOKENS})
string(FIND "${OUTPUT}" "${TEXT}" AT)
if(NOT AT EQUAL 0)
  message(FATAL_ERROR "the example wrote:\n${OUTPUT}\nexpected:\n${TEXT}")
endif()

# The other one looks inside, and says where the edit showed.
run(${EXAMPLES}/trace ${PREFIX}/share/kilin/models/tiny "The LORD said unto")
if(NOT OUTPUT MATCHES "layers.3.self_attn.attention_probabilities \\[4, [0-9]+, [0-9]+\\]" OR NOT OUTPUT MATCHES "without layer 2")
  message(FATAL_ERROR "the example of a trace wrote:\n${OUTPUT}")
endif()
