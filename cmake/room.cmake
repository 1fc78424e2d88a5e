include(GoogleTest)

# For tests that look at what is left on the machine, or at the kernel's own limits: never two of them. They wait more
# than they compute and all others run beside them, so one of them is begun whenever one can be.
set(HEARTH_ONE_AT_A_TIME RESOURCE_LOCK machine COST 2000)

# hearth_room(NAME DEPS room... [TEST_DEPS room...] [LIBS library...])
#
# One folder, one static library, one DEPS line. By name:
#   x.cc              the library hearth_NAME
#   x_test.cc         NAME_test, label unit: no privileges, no sleeping
#   x_kernel_test.cc  NAME_kernel_test, label kernel: the real kernel, as root
#   x_fuzz.cc         NAME_x_fuzz; runs its corpus (fuzz/NAME_x) as a unit test in every preset
function(hearth_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS;TEST_DEPS;LIBS" ${ARGN})
  file(GLOB all CONFIGURE_DEPENDS *.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  add_library(hearth_${name} STATIC ${sources})
  target_include_directories(hearth_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(REMOVE_ITEM ROOM_DEPS none)
  list(TRANSFORM ROOM_DEPS PREPEND hearth_)
  list(TRANSFORM ROOM_TEST_DEPS PREPEND hearth_)
  target_link_libraries(hearth_${name} PUBLIC ${ROOM_DEPS} ${ROOM_LIBS})
  set(kind base)
  if(name STREQUAL net OR hearth_net IN_LIST ROOM_DEPS)
    set(kind net)
  endif()
  hearth_precompile(hearth_${name} hearth_${kind} ${precompiled_${kind}})

  set(kernel_tests ${all})
  list(FILTER kernel_tests INCLUDE REGEX "_kernel_test\\.cc$")
  set(unit_tests ${all})
  list(FILTER unit_tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER unit_tests EXCLUDE REGEX "_kernel_test\\.cc$")
  hearth_test(${name}_test unit "${unit_tests}" hearth_${name} ${ROOM_TEST_DEPS})
  hearth_test(${name}_kernel_test kernel "${kernel_tests}" hearth_${name} ${ROOM_TEST_DEPS})

  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  foreach(fuzzer ${fuzzers})
    cmake_path(GET fuzzer STEM stem)
    hearth_fuzzer(${name}_${stem} ${fuzzer} hearth_${name})
  endforeach()
endfunction()

# hearth_test(TARGET LABEL SOURCES library...): one program, every TEST in it a ctest of its own.
function(hearth_test target label sources)
  if(NOT sources)
    return()
  endif()
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${ARGN} GTest::gtest_main)
  hearth_quick_to_compile(${target})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(order)
  if(NOT label STREQUAL unit)
    set(order ${HEARTH_ONE_AT_A_TIME})
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${label} TIMEOUT 300 ${order}
      SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]"
      ENVIRONMENT "HEARTH_BIN=${CMAKE_BINARY_DIR}/bin")
endfunction()

# What is tested is optimised; its tests need not be, and compile in half the time.
function(hearth_quick_to_compile target)
  if(NOT HEARTH_SANITIZE)
    target_compile_options(${target} PRIVATE -O0 -U_FORTIFY_SOURCE)
  endif()
  hearth_precompile(${target} base_test ${precompiled_net} <gtest/gtest.h>)
endfunction()

# hearth_fuzzer(TARGET SOURCE library...): a libFuzzer program in the fuzz preset; everywhere else a
# program that feeds it the kept corpus, as a unit test.
function(hearth_fuzzer target source)
  set(corpus ${PROJECT_SOURCE_DIR}/fuzz/${target})
  if(HEARTH_FUZZ)
    add_executable(${target} ${source})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${target} COMMAND ${target} -runs=0 ${corpus})
  else()
    add_executable(${target} ${source} ${PROJECT_SOURCE_DIR}/fuzz/replay_main.cc)
    hearth_quick_to_compile(${target})
    add_test(NAME ${target} COMMAND ${target} ${corpus})
  endif()
  target_link_libraries(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
  set_tests_properties(${target} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()
