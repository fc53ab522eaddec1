#pragma once

// The fixture of the tests of the facts of units.

#include <cstddef>
#include <string>

#include "store/facts.h"
#include "store/test_database.h"

namespace ceems::store {

class UnitFacts : public EveryDatabase {
 protected:
  static FactFilter everybodys() {
    FactFilter filter;
    filter.owners.everybody = true;
    filter.names.everybody = true;
    return filter;
  }

  /// "cluster/uuid" of all rows, page by page.
  Texts pages(FactListQuery query, std::size_t limit) {
    query.columns = {Fact::kClusterId, Fact::kUuid};
    query.limit = limit;
    Texts all;
    while (true) {
      auto rows = db_->reader().unit_facts(query);
      if (!rows) {
        return {rows.error().message};
      }
      std::size_t count = 0;
      while (true) {
        const auto row = (*rows)->next();
        if (!row) {
          return {row.error().message};
        }
        if (!*row) {
          break;
        }
        ++count;
        all.push_back(std::string((*rows)->text(0)) + "/" + std::string((*rows)->text(1)));
        query.after = FactPlace{.value = std::string((*rows)->text(2)), .id = (*rows)->integer(3)};
      }
      if (count < limit) {
        return all;
      }
    }
  }

  Texts column_of_all(Fact fact) {
    FactListQuery query{.filter = everybodys(), .columns = {fact}, .sort = Fact::kUuid};
    query.descending = false;
    return column(db_->reader().unit_facts(query), 0);
  }
};

}  // namespace ceems::store
