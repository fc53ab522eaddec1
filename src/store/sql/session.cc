#include "store/sql/session.h"

namespace ceems::store {

Result<> in_transaction(Session& session, const std::function<Result<>()>& work) {
  auto done = session.begin();
  if (done) {
    done = work();
  }
  if (done) {
    done = session.commit();
  }
  if (!done) {
    session.roll_back();
  }
  return done;
}

}  // namespace ceems::store
