#include <iostream>

#include "generation/states_doc.h"

int main() {
  std::cout << fermata::states_doc();
  return std::cout.good() ? 0 : 1;
}
