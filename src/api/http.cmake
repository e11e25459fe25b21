find_package(Boost 1.81 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(FERMATA_SODIUM REQUIRED IMPORTED_TARGET libsodium)

# For all who include Asio. g++ 12 sees a coroutine frame's own operator delete and not its operator new, and warns of
# fences that its thread sanitizer does not follow: io threads hand over under a lock as well. Asio keeps the memory of
# frames for the next one, which would hide from a sanitizer that one is used after its end.
add_library(fermata_asio INTERFACE)
target_link_libraries(fermata_asio INTERFACE Boost::headers)
target_compile_options(fermata_asio INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
if(FERMATA_SANITIZE)
  target_compile_definitions(fermata_asio INTERFACE BOOST_ASIO_DISABLE_SMALL_BLOCK_RECYCLING)
  target_compile_options(fermata_asio INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()

# The parser alone: no coroutine, so that clang 14 can fuzz it.
fermata_library(fermata_api_request
  SOURCES chunk_decoder.cc http_request.cc http_text.cc request_parser.cc
  LINKS fermata_base Boost::headers)

fermata_fuzz(http_request_fuzz SOURCES http_request_fuzz.cc LINKS fermata_api_request)

if(NOT FERMATA_FUZZ)
  fermata_library(fermata_api_http
    SOURCES api_keys.cc connection.cc guard.cc listener.cc response_head.cc router.cc websocket.cc
    LINKS fermata_api_request fermata_asio fermata_base PkgConfig::FERMATA_SODIUM)

  fermata_test(api_http_test
    SOURCES api_keys_test.cc guard_test.cc listener_test.cc request_parser_test.cc router_test.cc signal_test.cc
            silence_test.cc websocket_test.cc
    LINKS fermata_api_http)

  # CPU time of a streamed event, memory of an idle connection; built and run by hand.
  add_executable(http_bench EXCLUDE_FROM_ALL http_bench.cc)
  target_link_libraries(http_bench PRIVATE fermata_api_http)
endif()
