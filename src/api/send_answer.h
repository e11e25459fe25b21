#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "api/desk.h"
#include "api/http/http_message.h"

namespace fermata::api {

// How an answer goes to who asked for it; for the first request of a generation, for its repeats, and for a resume that
// wants to read on. Each ends with the answer, with a pause that the client asked to get, or when the client is gone.

// From entry `from` of the log, as chunks.
boost::asio::awaitable<void> send_stream(Desk& desk, std::shared_ptr<Dossier> dossier, std::size_t from,
                                         Exchange& exchange);
// What comes after entry `from`, and the text before it, when it is all there. A pause that the client did not ask to
// get is waited for, for a minute.
boost::asio::awaitable<void> send_whole(Desk& desk, std::shared_ptr<Dossier> dossier, std::size_t from,
                                        Exchange& exchange);

}  // namespace fermata::api
