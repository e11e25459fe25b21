# libllama, llama-common and ggml, built beforehand from the pinned sources (tools/build-llama). Imported, so that all
# build folders of this project share one build of them.
set(FERMATA_LLAMA_SOURCE ${CMAKE_SOURCE_DIR}/.deps/llama.cpp CACHE PATH "The pinned llama.cpp sources")
set(FERMATA_LLAMA_BUILD ${CMAKE_SOURCE_DIR}/.deps/llama-build CACHE PATH "Their build folder")

find_package(OpenMP REQUIRED)
function(fermata_import name path)
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${FERMATA_LLAMA_BUILD}/${path})
endfunction()
fermata_import(llama_ggml_base ggml/src/libggml-base.a)
fermata_import(llama_ggml_cpu ggml/src/libggml-cpu.a)
fermata_import(llama_ggml ggml/src/libggml.a)
fermata_import(llama_core src/libllama.a)
fermata_import(llama_common common/libllama-common.a)
fermata_import(llama_common_base common/libllama-common-base.a)
target_link_libraries(llama_ggml_base INTERFACE ${OpenMP_gomp_LIBRARY} m ${CMAKE_DL_LIBS} Threads::Threads)
target_link_libraries(llama_ggml_cpu INTERFACE llama_ggml_base)
target_link_libraries(llama_ggml INTERFACE llama_ggml_cpu llama_ggml_base)
target_link_libraries(llama_core INTERFACE llama_ggml)
target_link_libraries(llama_common INTERFACE llama_core llama_common_base)
foreach(target llama_ggml_base llama_ggml llama_core)
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
    "${FERMATA_LLAMA_SOURCE}/ggml/include;${FERMATA_LLAMA_SOURCE}/include")
endforeach()
set_target_properties(llama_common PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
  "${FERMATA_LLAMA_SOURCE}/common;${FERMATA_LLAMA_SOURCE}/vendor")
