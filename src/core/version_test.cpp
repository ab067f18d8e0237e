#include "core/version.h"

#include <gtest/gtest.h>

#include <string>

#include "core/file.h"
#include "support/golden.h"

namespace kilin {
namespace {

TEST(Version, IsThatOfTheProject) {
  const std::string project = read_file(testing::in_repository("CMakeLists.txt"));
  EXPECT_NE(project.find("VERSION " + std::string(version()) + " "), std::string::npos) << version();
}

}  // namespace
}  // namespace kilin
