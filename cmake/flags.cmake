# Compiler and linker settings for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(CCACHE ccache)
if(CCACHE)
  # What ccache wants to be told before it keeps files that were compiled with precompiled headers.
  set(launcher env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()
if(HEARTH_PCH)
  # The same headers give the same bytes, whenever they were precompiled.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                    -Wno-missing-field-initializers -Wno-missing-designated-field-initializers
                    -Wthread-safety -Werror)
add_compile_options(-fno-omit-frame-pointer)
add_link_options(-fuse-ld=lld)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

if(HEARTH_HARDEN)
  add_compile_options(-fstack-protector-strong -fcf-protection=full -ftrivial-auto-var-init=zero)
  add_compile_definitions($<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=3> _GLIBCXX_ASSERTIONS)
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(HEARTH_SANITIZE)
  add_compile_options(-fsanitize=${HEARTH_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HEARTH_SANITIZE})
endif()
if(HEARTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(HEARTH_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()

find_package(Threads REQUIRED)
# For the programs that keep objects: trees of JSON are made on one thread and freed on another, for
# which glibc's malloc takes locks. Sanitizers bring their own.
set(HEARTH_MALLOC "")
if(NOT HEARTH_SANITIZE)
  find_library(HEARTH_JEMALLOC jemalloc REQUIRED)
  set(HEARTH_MALLOC ${HEARTH_JEMALLOC})
endif()
find_package(GTest REQUIRED)
