#pragma once

namespace ceems::exporter::profile {

/// `ceems_exporter profile UNIT|PID [flags]`: samples a unit or a process for some seconds and
/// writes the profile to a file. argv[0] is the program, argv[1] is "profile". Returns the exit
/// status.
int run_command(int argc, const char* const* argv);

}  // namespace ceems::exporter::profile
