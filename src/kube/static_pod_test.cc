#include "kube/static_pod.h"

#include <string>
#include <utility>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace ceems::kube {
namespace {

constexpr const char* kHash = "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a";
/// What kube-apiserver 1.20 shows of the mirror of a static pod, without times and labels.
constexpr const char* kMirror = R"({"name": "etcd-n1", "namespace": "kube-system",
  "uid": "6d06282c-0377-4527-9a0f-9968bc9c4102",
  "annotations": {"kubernetes.io/config.hash": "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a",
    "kubernetes.io/config.mirror": "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a",
    "kubernetes.io/config.source": "file"},
  "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": true,
    "uid": "0a2d0c2a-4b1c-4f0e-9d3d-1c8a2f9e7b11"}]})";

std::string uid(const std::string& metadata, const std::string& node = "n1") {
  return static_pod_uid(boost::json::parse(metadata).as_object(), node);
}

/// The mirror with every `text` replaced.
std::string with(const std::string& text, const std::string& other) {
  std::string changed = kMirror;
  for (std::size_t at = changed.find(text); at != std::string::npos;
       at = changed.find(text, at + other.size())) {
    changed.replace(at, text.size(), other);
  }
  EXPECT_NE(changed, kMirror) << text;
  return changed;
}

TEST(StaticPod, HasTheUidThatTheKubeletGaveIt) {
  EXPECT_EQ(uid(kMirror), kHash);
  EXPECT_EQ(uid(kMirror, ""), kHash);  // the node is not known
}

TEST(StaticPod, IsNotWhatAUserWrites) {
  for (const auto& [text, other] : {
           std::pair("config.hash", "config.has"),
           {"config.mirror", "config.mirro"},
           {R"("Node")", R"("ReplicaSet")"},
           {R"("apiVersion": "v1")", R"("apiVersion": "apps/v1")"},
           {R"("controller": true)", R"("controller": false)"},
           {R"("controller": true)", R"("controller": "true")"},
           {R"("controller": true,)", ""},
           {R"("name": "n1")", R"("name": "")"},
           {R"("name": "n1")", R"("name": "n2")"},
           {R"("name": "n1")", R"("name": 1)"},
           {R"("etcd-n1")", R"("etcd")"},
           {R"("etcd-n1")", R"("n1")"},
           {R"([{"apiVersion")", R"([{}, {"apiVersion")"},
           {R"([{"apiVersion")", R"([1, {"apiVersion")"},
           {"ownerReferences", "owners"},
           {"annotations", "labels"},
           // The UID of another pod, and what is not a hash.
           {kHash, "6d06282c-0377-4527-9a0f-9968bc9c4103"},
           {kHash, "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4"},
           {kHash, "4C1B1F7F0E3A5D6C7B8A9F0E1D2C3B4A"},
       }) {
    EXPECT_EQ(uid(with(text, other)), "") << text << " " << other;
  }
  EXPECT_EQ(uid(kMirror, "n2"), "");
  EXPECT_EQ(uid("{}"), "");
  EXPECT_EQ(uid(R"({"annotations": 1, "ownerReferences": {}})"), "");
}

}  // namespace
}  // namespace ceems::kube
