# Compiler settings and the helpers with which every folder declares its target.

option(DDPRUN_BUILD_TESTS "Build the unit, property and fuzz tests (Catch2, rapidcheck)" ON)
option(DDPRUN_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(DDPRUN_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize, such as address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(THREADS_PREFER_PTHREAD_FLAG ON)

add_library(ddprun_settings INTERFACE)
target_compile_options(ddprun_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  -Wconversion -Wsign-conversion -Wimplicit-fallthrough -Werror -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # gcc 12 is wrong about moved-from std::variant alternatives (bug 105562) and about std::string's operator+
  # (bug 105329).
  # For -Wshadow it takes the enumerators of a scoped enumeration for names of the namespace.
  target_compile_options(ddprun_settings INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wshadow=local)
else()
  target_compile_options(ddprun_settings INTERFACE -Wshadow)
endif()
target_compile_definitions(ddprun_settings INTERFACE _GLIBCXX_ASSERTIONS)
target_include_directories(ddprun_settings INTERFACE "${PROJECT_SOURCE_DIR}")
if(DDPRUN_SANITIZE)
  target_compile_options(ddprun_settings INTERFACE
    -fsanitize=${DDPRUN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ddprun_settings INTERFACE -fsanitize=${DDPRUN_SANITIZE})
endif()
if(DDPRUN_FUZZ)
  target_compile_options(ddprun_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# ddprun_library(<name> SOURCES ... [DEPENDS ...] [PRIVATE_DEPENDS ...])
# The static library of one folder, visible to others as ddprun::<name>.
function(ddprun_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(ddprun_${name} STATIC ${ARG_SOURCES})
  add_library(ddprun::${name} ALIAS ddprun_${name})
  target_link_libraries(ddprun_${name}
    PUBLIC ${ARG_DEPENDS}
    PRIVATE ddprun_settings ${ARG_PRIVATE_DEPENDS})
  target_include_directories(ddprun_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
endfunction()
