#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/wire_format.h"

// What receivers read from requests, by the definitions of prometheus and opentelemetry-proto, with
// a reader that shares nothing with the writer. Anything else in a request fails the test.

namespace ceems::exporting {

/// Undoes the block format of snappy, as far as literals go.
inline std::string decode_snappy(std::string_view block) {
  std::size_t at = 0;
  const auto byte = [&] {
    EXPECT_LT(at, block.size());
    return at < block.size() ? static_cast<unsigned char>(block[at++]) : 0U;
  };
  std::size_t size = 0;
  for (unsigned shift = 0;; shift += 7) {
    const unsigned part = byte();
    size |= std::size_t{part & 0x7FU} << shift;
    if (part < 0x80) {
      break;
    }
  }
  std::string out;
  while (at < block.size()) {
    const unsigned tag = byte();
    EXPECT_EQ(tag & 3U, 0U) << "not a literal";
    std::size_t length = tag >> 2U;
    if (length >= 60) {
      const std::size_t bytes = length - 59;
      length = 0;
      for (std::size_t i = 0; i < bytes; ++i) {
        length |= std::size_t{byte()} << (8 * i);
      }
    }
    EXPECT_LE(at + length + 1, block.size());
    out += block.substr(at, length + 1);
    at += length + 1;
  }
  EXPECT_EQ(out.size(), size);
  return out;
}

inline std::vector<WireField> fields_of(std::string_view message) {
  std::vector<WireField> fields;
  WireReader reader(message);
  for (auto field = reader.next(); field; field = reader.next()) {
    fields.push_back(*field);
  }
  EXPECT_TRUE(reader.good());
  return fields;
}

/// The value of a fixed64 or double field, whose key is one byte.
inline std::uint64_t fixed64(const WireField& field) {
  std::uint64_t value = 0;
  EXPECT_EQ(field.bytes.size(), 9U);
  std::memcpy(&value, field.bytes.data() + 1, sizeof(value));  // little-endian, as this machine
  return value;
}
inline double real(const WireField& field) {
  return std::bit_cast<double>(fixed64(field));
}

/// NAME{a="b",...} VALUE @TIME, in the order of the request.
inline std::vector<std::string> decode_write(std::string_view request) {
  std::vector<std::string> all;
  for (const WireField& series : fields_of(request)) {
    EXPECT_EQ(series.number, 1U);
    std::string name;
    std::string labels;
    std::string last;
    std::string sample;
    for (const WireField& field : fields_of(series.bytes)) {
      const auto inner = fields_of(field.bytes);
      EXPECT_EQ(inner.size(), 2U);
      if (field.number == 1) {
        const std::string label(inner.at(0).bytes);
        EXPECT_LT(last, label) << "labels are not sorted";
        last = label;
        if (label == "__name__") {
          name = inner.at(1).bytes;
        } else {
          labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", label, inner.at(1).bytes);
        }
      } else {
        EXPECT_EQ(field.number, 2U);
        EXPECT_TRUE(sample.empty());
        sample = fmt::format("{} @{}", real(inner.at(0)), inner.at(1).varint().value_or(0));
      }
    }
    all.push_back(fmt::format("{}{{{}}} {}", name, labels, sample));
  }
  return all;
}

inline std::string decode_attribute(std::string_view message) {
  const auto pair = fields_of(message);
  EXPECT_EQ(pair.size(), 2U);
  const auto value = fields_of(pair.at(1).bytes);
  EXPECT_EQ(value.size(), 1U);
  EXPECT_EQ(value.at(0).number, 1U);  // a string
  return fmt::format("{}={}", pair.at(0).bytes, value.at(0).bytes);
}

/// A line for each resource, "resource a=b ... schema", and one for each point, "NAME UNIT
/// sum|gauge VALUE START TIME a=b ...", with times in ns.
inline std::vector<std::string> decode_metrics(std::string_view request) {
  std::vector<std::string> all;
  for (const WireField& resource_metrics : fields_of(request)) {
    EXPECT_EQ(resource_metrics.number, 1U);
    std::string resource = "resource";
    std::vector<std::string> points;
    for (const WireField& part : fields_of(resource_metrics.bytes)) {
      if (part.number == 1) {
        for (const WireField& attribute : fields_of(part.bytes)) {
          EXPECT_EQ(attribute.number, 1U);
          resource += " " + decode_attribute(attribute.bytes);
        }
      } else if (part.number == 3) {
        resource += " " + std::string(part.bytes);
      }
      if (part.number != 2) {
        continue;
      }
      for (const WireField& metric : fields_of(part.bytes)) {
        if (metric.number == 1) {
          EXPECT_EQ(fields_of(metric.bytes).at(0).bytes, "ceems_api_server");
          continue;
        }
        EXPECT_EQ(metric.number, 2U);
        std::map<std::uint32_t, std::string_view> known;
        for (const WireField& field : fields_of(metric.bytes)) {
          known[field.number] = field.bytes;
        }
        EXPECT_EQ(known.size(), 3U);
        const bool sum = known.contains(7);
        for (const WireField& data : fields_of(known[sum ? 7 : 5])) {
          if (data.number != 1) {
            EXPECT_TRUE(sum);
            EXPECT_EQ(data.varint(), data.number == 2 ? 2U : 1U);  // cumulative, monotonic
            continue;
          }
          std::string attributes;
          double value = 0;
          std::uint64_t start = 0;
          std::uint64_t time = 0;
          for (const WireField& field : fields_of(data.bytes)) {
            switch (field.number) {
              case 2:
                start = fixed64(field);
                break;
              case 3:
                time = fixed64(field);
                break;
              case 4:
                value = real(field);
                break;
              default:
                EXPECT_EQ(field.number, 7U);
                attributes += " " + decode_attribute(field.bytes);
            }
          }
          points.push_back(fmt::format("{} {} {} {} {} {}{}", known[1], known[3],
                                       sum ? "sum" : "gauge", value, start, time, attributes));
        }
      }
    }
    all.push_back(resource);
    all.insert(all.end(), points.begin(), points.end());
  }
  return all;
}

}  // namespace ceems::exporting
