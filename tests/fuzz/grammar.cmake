fermata_fuzz(grammar_fuzz SOURCES grammar_fuzz.cc LINKS fermata_sampling)
if(FERMATA_LLAMA)
  fermata_fuzz(schema_fuzz SOURCES schema_fuzz.cc LINKS fermata_engine_llama_sampling)
endif()
