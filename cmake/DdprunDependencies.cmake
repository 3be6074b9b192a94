# What we take from others (DESIGN: libraries before our own code). Debian's packages provide all of it.
# The libraries are header-only or linked statically, so that the launcher starts without loading any.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)

add_library(ddprun_asio INTERFACE)
target_include_directories(ddprun_asio SYSTEM INTERFACE "${ASIO_INCLUDE_DIR}")
# Whether Asio finds aligned_alloc depends on what a file includes before it: files would then free what
# others allocated by another allocator. Switched off, all agree on new and delete.
target_compile_definitions(ddprun_asio INTERFACE
  ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_SEPARATE_COMPILATION ASIO_DISABLE_BOOST_ASSERT
  ASIO_DISABLE_STD_ALIGNED_ALLOC)
target_link_libraries(ddprun_asio INTERFACE Threads::Threads)
