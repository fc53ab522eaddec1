#include "ingest/updater/updater.h"

namespace ceems::ingest {

// One line here and one below for each updater: NAME_updater() is defined in NAME.cc or
// NAME/NAME.cc.
UpdaterSpec tsdb_updater();

const std::vector<UpdaterSpec>& all_updaters() {
  static const std::vector<UpdaterSpec> specs = {
      tsdb_updater(),
  };
  return specs;
}

}  // namespace ceems::ingest
