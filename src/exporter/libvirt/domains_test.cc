#include "exporter/libvirt/domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::libvirt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kUuid = "0c3eaa31-90a4-4a5b-8a3c-6c1a0d2b7e11";

std::string domain_of(const std::string& devices) {
  return "<?xml version='1.0'?>\n<!-- edit with virsh -->\n<domain type='kvm' "
         "xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'>\n  <name>instance-00000001</name>\n"
         "  <uuid>" +
         std::string(kUuid) + "</uuid>\n  <metadata><m:uuid xmlns:m='x'>no</m:uuid></metadata>\n" +
         "  <devices>\n<disk type='file'/>" + devices + "</devices>\n</domain>\n";
}

TEST(DomainXml, HasUuidAndPassedThroughDevices) {
  const auto domain = parse_domain_xml(domain_of(R"(
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <driver name='vfio'/>
      <source><address domain='0x0000' bus='0x3b' slot='0x00' function='0x0'/></source>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/>
    </hostdev>
    <hostdev mode='subsystem' type='mdev' model='vfio-pci'>
      <source><address uuid='C73F1FA6-489e-4834-9476-d70dabd98c40'/></source>
    </hostdev>
    <hostdev mode='subsystem' type='pci'>
      <source><address type='pci' domain='0x10000' bus='0xAF' slot='0x1f' function='0x7'/></source>
    </hostdev>)"));
  ASSERT_TRUE(domain);
  EXPECT_EQ(domain->uuid, kUuid);
  EXPECT_THAT(domain->pci_addresses, ElementsAre("0000:3b:00.0", "10000:af:1f.7"));
  EXPECT_THAT(domain->mdevs, ElementsAre("c73f1fa6-489e-4834-9476-d70dabd98c40"));
}

TEST(DomainXml, KeepsADeviceThatIsNamedTwice) {
  const std::string mdev = "<hostdev type='mdev'><source><address uuid='a-1'/></source></hostdev>";
  EXPECT_THAT(parse_domain_xml(domain_of(mdev + mdev))->mdevs, ElementsAre("a-1", "a-1"));
}

TEST(DomainXml, LeavesOutHostdevsThatNameNoDevice) {
  const auto domain = parse_domain_xml(domain_of(R"(
    <hostdev type='usb'><source><address bus='1' device='2'/></source></hostdev>
    <hostdev type='pci'/>
    <hostdev type='pci'><source><address bus='0x3b'/></source></hostdev>
    <hostdev type='pci'><source><address bus='zz' slot='0' function='0'/></source></hostdev>
    <hostdev type='pci'><source><address bus='0x1ff' slot='0' function='0'/></source></hostdev>
    <hostdev type='mdev'><source><address/></source></hostdev>
    <hostdev type='mdev'><source><address uuid='a b'/></source></hostdev>)"));
  ASSERT_TRUE(domain);
  EXPECT_THAT(domain->pci_addresses, IsEmpty());
  EXPECT_THAT(domain->mdevs, IsEmpty());
}

TEST(DomainXml, AcceptsAnyRootElement) {
  const std::string status = "<domstatus><uuid>" + std::string(kUuid) + "</uuid></domstatus>";
  EXPECT_EQ(parse_domain_xml(status)->uuid, kUuid);
}

TEST(DomainXml, IsInsideTheStatusOfARunningDomain) {
  const auto domain = parse_domain_xml(
      "<!--\nWARNING: THIS IS AN AUTO-GENERATED FILE.\n-->\n"
      "<domstatus state='running' reason='booted' pid='4711'>\n<taint flag='high-privileges'/>\n"
      "<monitor path='/var/lib/libvirt/qemu/domain-1/monitor.sock' type='unix'/>\n"
      "<uuid>not-this</uuid>\n" +
      domain_of("<hostdev type='mdev'><source><address uuid='a-1'/></source></hostdev>")
          .substr(std::string("<?xml version='1.0'?>\n").size()) +
      "</domstatus>\n");
  ASSERT_TRUE(domain);
  EXPECT_EQ(domain->uuid, kUuid);
  EXPECT_THAT(domain->mdevs, ElementsAre("a-1"));
}

TEST(DomainXml, RefusesTextsWithoutUuid) {
  for (const std::string text :
       {"", "no xml", "<domain/>", "<domain><uuid/></domain>", "<domain><uuid>a\"b</uuid></domain>",
        "<domain><devices><uuid>1</uuid></devices></domain>", "<domain><uuid>1</uuid>", "<domain",
        "\xff\xfe<", "<domain><uuid>1</wrong></domain>"}) {
    const auto domain = parse_domain_xml(text);
    ASSERT_FALSE(domain) << text;
    EXPECT_EQ(domain.error().code, ErrorCode::kParse) << text;
  }
}

TEST(DomainXml, ExpandsNoEntities) {
  std::string bomb = "<!DOCTYPE domain [<!ENTITY a0 \"ha\">";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "&a" + std::to_string(i - 1) + ";";
    bomb += "<!ENTITY a" + std::to_string(i) + " \"" + before + before + "\">";
  }
  bomb += "<!ENTITY file SYSTEM \"file:///etc/passwd\">]>";
  const auto expanded = parse_domain_xml(bomb + "<domain><uuid>&a29;&file;</uuid></domain>");
  ASSERT_FALSE(expanded);
  EXPECT_THAT(expanded.error().message, HasSubstr("got '&a29;&file;'"));
  EXPECT_EQ(parse_domain_xml(bomb + "<domain><uuid>1-2</uuid><x>&a29;</x></domain>")->uuid, "1-2");
}

TEST(DomainXml, LimitsSizeAndDepth) {
  std::string deep = "<domain><uuid>1</uuid>";
  for (int i = 0; i < 40'000; ++i) {
    deep += "<a>";
  }
  EXPECT_FALSE(parse_domain_xml(deep));  // not closed, and no crash
  std::string many = "<domain><uuid>1</uuid>";
  for (int i = 0; i < 150'000; ++i) {
    many += "<a/>";
  }
  EXPECT_THAT(parse_domain_xml(many + "</domain>").error().message, HasSubstr("too many elements"));
  EXPECT_THAT(parse_domain_xml(std::string(kMaxDomainXml + 1, ' ')).error().message,
              HasSubstr("expected at most"));
}

}  // namespace
}  // namespace ceems::exporter::libvirt
