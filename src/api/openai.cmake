find_package(Boost 1.81 REQUIRED COMPONENTS json)

fermata_library(fermata_api_openai
  SOURCES
    answer.cc call.cc call_fermata.cc call_messages.cc call_sampling.cc fields.cc fields_doc.cc http_error.cc json.cc
    stream_answer.cc thought.cc
  LINKS fermata_generation fermata_engine fermata_base Boost::json)

# fermata_api_doc < docs/api.md > new.md
add_executable(fermata_api_doc fields_doc_main.cc)
target_link_libraries(fermata_api_doc PRIVATE fermata_api_openai)

fermata_test(api_openai_test
  SOURCES answer_test.cc call_test.cc fields_test.cc http_error_test.cc json_test.cc stream_answer_test.cc thought_test.cc
  LINKS fermata_api_openai fermata_engine_fake)
if(TARGET api_openai_test)
  target_compile_definitions(api_openai_test PRIVATE
    FERMATA_API_DOC="${CMAKE_SOURCE_DIR}/docs/api.md"
    FERMATA_CALL_CASES="${CMAKE_CURRENT_SOURCE_DIR}/call_cases.json")
endif()
