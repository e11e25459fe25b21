#include <iostream>
#include <iterator>

#include "api/openapi/doc_tables.h"

// fermata_api_doc < docs/api.md > new.md
int main() {
  const std::string document{std::istreambuf_iterator<char>(std::cin), {}};
  std::cout << fermata::api::with_tables(document);
  return std::cout.good() ? 0 : 1;
}
