# Included by bench/CMakeLists.txt.
find_package(benchmark REQUIRED)
add_executable(plan_bench plan_bench.cc)
target_link_libraries(plan_bench PRIVATE fermata_flags fermata_scheduler benchmark::benchmark)
