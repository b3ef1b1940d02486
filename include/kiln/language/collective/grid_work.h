// grid_work.h: work that CTAs share and wait for, without having to be there at
// once.
//
// Of a plain launch nobody knows which CTAs run: where a device holds too few,
// or other kernels hold it, some begin only when others have ended, and who
// waits for one of those waits forever. Here a CTA waits only for CTAs that run
// already, and does what others would have to do later. So the launch need not
// be cooperative, which would cost it the overlap with the launch before it
// (about 1 us on an H200). Where all CTAs run side by side, as they nearly
// always do, each does its own part.
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>

#include <functional>
#include <string>

namespace KILN_API kiln {

/// Work of all CTAs that comes before everything else, in as many parts as
/// there are CTAs:
///
///     GridWork copies(kb, ctas);
///     copies.begin();
///     copies.run([&](const Value &part) { ... copy that part ... });
///     copies.finish();
///     ... tma_load what others copied ...
///
/// A CTA does the part with its number, and then those that nobody has begun
/// for long.
class GridWork {
public:
  /// Of at most so many CTAs, along x. Its counters are a workspace of that
  /// name.
  GridWork(KernelBuilder &kb, const Dim &ctas,
           const std::string &name = "claims", Where where = Where::current());

  /// Take a part. All threads call it and the next two, outside of roles, once
  /// in a kernel. It may come before wait_for_dependencies, if `finish` and
  /// nobody else launches dependents.
  void begin(Where where = Where::current()) const;
  /// Run `part` with the number of each part that is this CTA's, by all its
  /// threads; then wait until all parts are done. What they wrote is seen
  /// behind it, by TMA too.
  void run(const std::function<void(const Value &part)> &part,
           Where where = Where::current()) const;

  /// Be ready for the next launch; `launches`: and let it begin
  /// (launch_dependents).
  void finish(bool launches = false, Where where = Where::current()) const;

private:
  struct Search;
  Value find(Search &search) const;

  Tensor words_; ///< parts that are done; claims
  SharedTile told_;
};

/// Work of groups of CTAs in two steps. Each member does its part; behind all
/// parts, each does its share of what is left:
///
///     GroupWork sums(kb, {.groups = tiles, .members = 4});
///     sums.begin({.group = tile, .rank = rank});
///     sums.finish({.group = tile, .rank = rank},
///                 [&] { ... store the part of this CTA ... },
///                 [&](const Value &share) {
///                   ... add up the share-th quarter of all four parts ...
///                 });
///
/// A member whose group does not run yet as a whole leaves its share to the one
/// that comes last.
class GroupWork {
public:
  struct Options {
    Dim groups = 1;
    int members = 1;    ///< CTAs of a group
    int warpgroups = 1; ///< of a CTA that take part, each in another group
    std::string name = "meetings"; ///< of the workspaces
  };
  GroupWork(KernelBuilder &kb, const Options &options,
            Where where = Where::current());

  struct Member {
    At group = 0, rank = 0;
    At warpgroup = 0; ///< which of the CTA's calls
  };
  /// As early as may be, behind wait_for_dependencies: by the threads of a
  /// warpgroup, by all of the CTA outside of roles, or by one; once in a
  /// launch.
  void begin(const Member &member, Where where = Where::current()) const;
  /// Run `part`, which writes what the others read; then `share` with the
  /// number of each share that is this member's: its own, or none, or also
  /// those that were left to it. By the 128 threads of a warpgroup.
  void finish(const Member &member, const std::function<void()> &part,
              const std::function<void(const Value &share)> &share,
              Where where = Where::current()) const;

private:
  void arrive(const Member &member, const Value &begun) const;

  int members_;
  Tensor arrivals_;       ///< of each group
  Tensor state_;          ///< of each group: who has begun, who left a share
  SharedTileArray roles_; ///< by which one thread tells the others
};

} // namespace kiln
