#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <boost/json/fwd.hpp>

#include "base/wire_format.h"
#include "gate/request.h"

namespace ceems::gate {

/// A field that users may send. Other fields are refused, because a server may interpret them and
/// read data that the selectors do not name: `async`, for example, fetches the answer to any user's
/// earlier request.
struct ProfileField {
  enum class Kind : std::uint8_t {
    kText,
    kTexts,   ///< repeated string
    kNumber,  ///< integers, booleans and enumerations
    kDouble,
    kMessage,
    kMessages,  ///< repeated message
  };
  std::uint32_t number;
  std::string_view proto_name;
  std::string_view json_name;
  Kind kind;
  std::span<const ProfileField> inner = {};  ///< of a message
};
using ProfileFields = std::span<const ProfileField>;

/// The fields of the request of a method of querier.v1.QuerierService, as of Pyroscope 2.1
/// (github.com/grafana/pyroscope/api 1.6.0, api/querier/v1 and api/types/v1). Empty for methods
/// that are not known.
ProfileFields fields_of_call(std::string_view method);

/// Refuses fields that are not listed, or whose wire type is not that of the list, in the message
/// and in those within it.
Checked<bool> check_fields(const std::vector<WireField>& message, ProfileFields fields);
/// The same for ProtoJSON. A field must be given under one of its two names only.
Checked<bool> check_fields(const boost::json::object& message, ProfileFields fields);

}  // namespace ceems::gate
