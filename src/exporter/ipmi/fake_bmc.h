#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "exporter/ipmi/fake_port.h"

namespace ceems::exporter::ipmi {

/// The parts of a full sensor record (IPMI 2.0, table 43-1) that tests vary.
struct RecordParts {
  std::uint8_t number = 1;
  std::string_view name = "Power";
  std::uint8_t unit = 6;    ///< watts
  std::uint8_t units1 = 0;  ///< unsigned, no rate, no modifier
  std::uint8_t linearization = 0;
  int m = 1;
  int b = 0;
  int b_exponent = 0;
  int r_exponent = 0;
  std::uint8_t owner = 0x20;
  std::uint8_t lun = 0;
};

/// A full sensor record with its header. Its record number is set by FakeBmc.
inline Bytes full_record(const RecordParts& parts) {
  const auto ten = [](int value) { return static_cast<unsigned>(value) & 0x3FFU; };
  const auto four = [](int value) { return static_cast<unsigned>(value) & 0xFU; };
  Bytes record(48, 0);
  record[2] = 0x51;
  record[3] = 0x01;
  record[5] = parts.owner;
  record[6] = parts.lun;
  record[7] = parts.number;
  record[20] = parts.units1;
  record[21] = parts.unit;
  record[23] = parts.linearization;
  record[24] = static_cast<std::uint8_t>(ten(parts.m) & 0xFFU);
  record[25] = static_cast<std::uint8_t>((ten(parts.m) >> 8U) << 6U);
  record[26] = static_cast<std::uint8_t>(ten(parts.b) & 0xFFU);
  record[27] = static_cast<std::uint8_t>((ten(parts.b) >> 8U) << 6U);
  record[29] = static_cast<std::uint8_t>(four(parts.r_exponent) << 4U | four(parts.b_exponent));
  record[47] = static_cast<std::uint8_t>(0xC0U | parts.name.size());
  record.insert(record.end(), parts.name.begin(), parts.name.end());
  record[4] = static_cast<std::uint8_t>(record.size() - 5);
  return record;
}

/// A compact sensor record (table 43-2).
inline Bytes compact_record(std::uint8_t number, std::string_view name) {
  Bytes record(32, 0);
  record[2] = 0x51;
  record[3] = 0x02;
  record[5] = 0x20;
  record[7] = number;
  record[21] = 6;
  record[31] = static_cast<std::uint8_t>(0xC0U | name.size());
  record.insert(record.end(), name.begin(), name.end());
  record[4] = static_cast<std::uint8_t>(record.size() - 5);
  return record;
}

/// An event-only record (table 43-3).
inline Bytes event_record(std::uint8_t number, std::string_view name) {
  Bytes record(17, 0);
  record[2] = 0x51;
  record[3] = 0x03;
  record[5] = 0x20;
  record[7] = number;
  record[16] = static_cast<std::uint8_t>(0xC0U | name.size());
  record.insert(record.end(), name.begin(), name.end());
  record[4] = static_cast<std::uint8_t>(record.size() - 5);
  return record;
}

/// A BMC with a repository of sensor records. Tests change it while it is read. Safe for concurrent
/// use.
class FakeBmc {
 public:
  void add(Bytes record) {
    const MutexLock lock(mutex_);
    const std::size_t id = records_.size() + 1;
    record[0] = static_cast<std::uint8_t>(id);
    record[1] = static_cast<std::uint8_t>(id >> 8U);
    records_.push_back(std::move(record));
    ++additions_;
  }
  /// The data of the answers to Get Sensor Reading, completion code first. {} for no answer.
  void set_reading(std::uint8_t number, Bytes answer) {
    const MutexLock lock(mutex_);
    readings_[number] = std::move(answer);
  }
  void set_raw(std::uint8_t number, std::uint8_t raw) { set_reading(number, {0x00, raw, 0xC0}); }
  /// The answer to Get Sensor Reading Factors of any sensor.
  void set_factors(Bytes answer) {
    const MutexLock lock(mutex_);
    factors_ = std::move(answer);
  }
  void set_power(Bytes answer) {
    const MutexLock lock(mutex_);
    power_ = std::move(answer);
  }
  void set_silent(bool silent) {
    const MutexLock lock(mutex_);
    silent_ = silent;
  }
  /// More bytes than this in one request are refused.
  void set_largest_part(std::size_t bytes) {
    const MutexLock lock(mutex_);
    largest_part_ = bytes;
  }
  /// The next requests for records find their reservation cancelled.
  void cancel_reservations(int requests) {
    const MutexLock lock(mutex_);
    cancelled_ = requests;
  }
  /// The last record names this one as the next.
  void set_end(std::uint16_t next) {
    const MutexLock lock(mutex_);
    end_ = next;
  }
  [[nodiscard]] int requests(std::uint8_t netfn, std::uint8_t command) const {
    const MutexLock lock(mutex_);
    const auto found = requests_.find({netfn, command});
    return found == requests_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::unique_ptr<Port> port() {
    return std::make_unique<FakePort>([this](const Request& request, long id) {
      const Bytes data = answer(request);
      return data.empty() ? std::vector<Message>{}
                          : std::vector<Message>{answer_to(request, id, data)};
    });
  }

 private:
  Bytes answer(const Request& request) {
    const MutexLock lock(mutex_);
    ++requests_[{request.netfn, request.command}];
    if (silent_) {
      return {};
    }
    if (request.netfn == 0x2c) {
      return power_;
    }
    if (request.netfn == 0x04 && request.command == 0x2d) {
      const auto found = readings_.find(request.data.at(0));
      return found == readings_.end() ? Bytes{0xCB} : found->second;
    }
    if (request.netfn == 0x04 && request.command == 0x23) {
      return factors_;
    }
    if (request.netfn == 0x0a && request.command == 0x20) {
      return {0x00,       0x51, static_cast<std::uint8_t>(records_.size()),
              0,          0xff, 0xff,
              additions_, 0,    0,
              0,          0,    0,
              0,          0,    0x02};
    }
    if (request.netfn == 0x0a && request.command == 0x22) {
      ++reservation_;
      return {0x00, reservation_, 0x00};
    }
    return request.netfn == 0x0a && request.command == 0x23 ? part(request.data) : Bytes{0xC1};
  }

  Bytes part(const Bytes& data) CEEMS_REQUIRES(mutex_) {
    if (cancelled_ > 0 || data.at(0) != reservation_) {
      --cancelled_;
      return {0xC5};
    }
    const std::size_t id = data.at(2) | static_cast<std::size_t>(data.at(3)) << 8U;
    const std::size_t index = id == 0 ? 0 : id - 1;
    if (index >= records_.size()) {
      return {0xCB};
    }
    if (data.at(5) > largest_part_) {
      return {0xCA};
    }
    const std::size_t next = index + 1 < records_.size() ? index + 2 : end_;
    Bytes answer{0x00, static_cast<std::uint8_t>(next), static_cast<std::uint8_t>(next >> 8U)};
    const Bytes& record = records_.at(index);
    const std::size_t begin = std::min<std::size_t>(data.at(4), record.size());
    const std::size_t end = std::min<std::size_t>(begin + data.at(5), record.size());
    answer.insert(answer.end(), record.begin() + static_cast<std::ptrdiff_t>(begin),
                  record.begin() + static_cast<std::ptrdiff_t>(end));
    return answer;
  }

  mutable Mutex mutex_;
  std::vector<Bytes> records_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::uint8_t, Bytes> readings_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::pair<std::uint8_t, std::uint8_t>, int> requests_ CEEMS_GUARDED_BY(mutex_);
  Bytes factors_ CEEMS_GUARDED_BY(mutex_){0xC1};
  Bytes power_ CEEMS_GUARDED_BY(mutex_) = good_reading();
  std::size_t largest_part_ CEEMS_GUARDED_BY(mutex_) = 255;
  std::size_t end_ CEEMS_GUARDED_BY(mutex_) = 0xffff;
  int cancelled_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::uint8_t reservation_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::uint8_t additions_ CEEMS_GUARDED_BY(mutex_) = 0;
  bool silent_ CEEMS_GUARDED_BY(mutex_) = false;
};

}  // namespace ceems::exporter::ipmi
