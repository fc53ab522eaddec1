#pragma once

namespace ceems::exporter::run {

/// `ceems_exporter run [flags] -- COMMAND`: runs a command of an ordinary user and reports what it
/// used, on all nodes of its job. argv[0] is the program, argv[1] is "run". Returns the exit status
/// of the command, 128 + n if a signal ended it.
int run_command(int argc, const char* const* argv);

}  // namespace ceems::exporter::run
