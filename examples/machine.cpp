// Which Kilin this is, and what the machine has for it.
#include <kilin/kilin.h>

#include <iostream>

int main() {
  const kilin::CpuInfo cpu = kilin::CpuInfo::detect();
  const kilin::MemoryInfo memory = kilin::MemoryInfo::detect();
  std::cout << "Kilin " << kilin::version() << " on " << cpu.name << ": " << kilin::usable_threads() << " threads, "
            << (memory.available >> 20) << " of " << (memory.total >> 20) << " MiB free\n";
}
