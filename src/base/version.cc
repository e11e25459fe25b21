#include "base/version.h"

#ifndef FERMATA_VERSION
#error "the build says which version this is"
#endif

namespace fermata {

const char* version() { return FERMATA_VERSION; }

}  // namespace fermata
