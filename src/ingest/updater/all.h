#pragma once

#include "ingest/updater/updater.h"

namespace ceems::ingest {

// The list of updaters. A line that declares NAME_updater() is all the build needs to include
// NAME.cc and NAME_test.cc, here or in the folder NAME/, and to call the function in
// all_updaters(): CMakeLists.txt reads this file. The order of the lines does not matter.
UpdaterSpec tsdb_updater();

}  // namespace ceems::ingest
