#pragma once

#include <CLI/App.hpp>
#include <functional>

#include "cli/interrupt_signal.h"

namespace fermata::cli {

// Each adds its subcommand; what it returns runs it and gives the exit code. The settings live as long as the function.
using Command = std::function<int(InterruptSignal&)>;
Command add_run(CLI::App& app);
Command add_serve(CLI::App& app);
Command add_demo(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_doctor(CLI::App& app);
Command add_prepare_model(CLI::App& app);
Command add_new_key(CLI::App& app);
Command add_ps(CLI::App& app);
Command add_pause(CLI::App& app);
Command add_resume(CLI::App& app);
Command add_cancel(CLI::App& app);
Command add_tokens(CLI::App& app);
Command add_chat(CLI::App& app);
// These print what is made from all the others.
Command add_config(CLI::App& app);
Command add_completion(CLI::App& app);
Command add_man(CLI::App& app);

}  // namespace fermata::cli
