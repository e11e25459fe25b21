# Included by bench/CMakeLists.txt.
add_executable(attention_bench attention_bench.cc)
target_link_libraries(attention_bench PRIVATE fermata_flags fermata_attention llama_core)
target_include_directories(attention_bench PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_include_directories(attention_bench SYSTEM PRIVATE ${FERMATA_LLAMA_SOURCE}/include)
