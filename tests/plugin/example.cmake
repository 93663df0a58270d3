# Installs the development package into an empty prefix, then configures, builds and installs examples/plugin with nothing
# but that, as an author of plugins would.
file(REMOVE_RECURSE ${WORK})
function(step)
    execute_process(COMMAND ${CMAKE_COMMAND} ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
step(--install ${BUILD} --component development --prefix ${WORK}/installed)
step(-S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${COMPILER}
    -DCMAKE_PREFIX_PATH=${WORK}/installed -DCMAKE_C_FLAGS=-Wall\ -Wextra\ -Werror)
step(--build ${WORK}/build)
step(--install ${WORK}/build)
