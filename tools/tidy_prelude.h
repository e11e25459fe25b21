// Read before every file that clang-tidy looks at: clang 14 against headers that the compiler we build with reads as
// C++20. It refuses names of CPU features that it does not know (what the builtin answers is no matter here), and looks
// for coroutines where the standard had them once.
#pragma once
#pragma clang diagnostic ignored "-Wdeprecated-experimental-coroutine"
#define __builtin_cpu_supports(feature) (__builtin_strlen(feature) > 0)
#define __cpp_impl_coroutine 201902L
#define BOOST_ASIO_HAS_CO_AWAIT 1
#define BOOST_ASIO_HAS_STD_COROUTINE 1
#include <coroutine>
namespace std::experimental {
using std::coroutine_handle;
using std::coroutine_traits;
}  // namespace std::experimental
