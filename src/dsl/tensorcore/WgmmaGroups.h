// WgmmaGroups: which accumulators the products in flight may still be writing.
//
// wgmma is asynchronous. Products are committed in groups, groups finish in
// their order, and `wait N` returns when all but the N newest have finished. So
// what matters of an accumulator is how many groups are newer than its last
// one; here that is followed while the kernel is built:
//
//     s.mma(q, k)       s: 0
//     acc.mma(p, v)     s: 1   acc: 0
//     wait(1)           s: landed, acc: 0      s may be read
//     wait(0)                  acc: landed
//
// Where paths meet the least number counts. The body of a loop runs once, so
// each use of an accumulator inside is kept with what it asks of the head of
// the loop, and held against what the end of the body left there.
#pragma once

#include "kiln/base/error.h"

#include <map>
#include <optional>
#include <vector>

namespace kiln {

class WgmmaGroups {
public:
  /// Names an accumulator.
  using Id = int;
  /// Newer groups than an accumulator's own where no product writes it...
  static constexpr int kLanded = 1 << 30;
  /// ... and where its product has not been committed yet.
  static constexpr int kOpen = -1;

  Id add() { return next_++; }

  /// A product into `id` was issued.
  void issue(Id id, const SourceLine &where);
  /// What was issued became a group.
  void commit();
  /// All but the `groups` newest have finished. Gives the accumulators that
  /// have landed by it.
  std::vector<Id> wait(int groups);
  /// At least so many groups are newer than the last one of `id`.
  int newer(Id id) const;
  bool isInFlight(Id id) const { return newer(id) != kLanded; }
  /// The registers of `id` are read or written here, and may be as far as the
  /// path to here is concerned.
  void use(Id id, const SourceLine &where);

  /// A use at which the product of the loop's previous turn may be in flight.
  struct Conflict {
    Id id;
    SourceLine use, product;
    int newer; ///< groups, at the end of the turn
  };

private:
  struct Product {
    int newer = kOpen;
    SourceLine where;
    std::optional<std::size_t> role; ///< whose it is
  };
  /// What has happened since the head of a loop, on every path.
  struct SinceHead {
    int commits = 0;
    /// A product is waited for by now if at the head so many groups were newer.
    int covered = kLanded;
  };
  /// What is known at one point of the kernel.
  struct Point {
    std::map<Id, Product> products; ///< those in flight
    std::vector<SinceHead> loops;   ///< around it, the outermost first

    void join(const Point &other);
  };
  struct Use {
    Id id;
    int covered; ///< SinceHead's, there
    SourceLine where;
  };
  bool isMine(const Product &product) const {
    return !role_ || !product.role || product.role == role_;
  }

  Point point_;
  std::vector<std::vector<Use>> uses_; ///< of each loop around
  std::optional<std::size_t> role_;    ///< being built
  Id next_ = 0;

public:
  /// Code that may or may not run, or one of several ways: from construction to
  /// `otherwise` or the end.
  class Branch {
  public:
    explicit Branch(WgmmaGroups &groups)
        : groups_(groups), other_(groups.point_) {}
    /// The first way ends and the other one begins, where the first began.
    void otherwise() { std::swap(groups_.point_, other_); }
    ~Branch() { groups_.point_.join(other_); }
    Branch(const Branch &) = delete;

  private:
    WgmmaGroups &groups_;
    Point other_;
  };

  /// The body of a loop.
  class Loop {
  public:
    explicit Loop(WgmmaGroups &groups);
    /// The end of the body: the first use that the turn before could disturb.
    std::optional<Conflict> conflict() const;
    ~Loop();
    Loop(const Loop &) = delete;

  private:
    WgmmaGroups &groups_;
  };

  /// Products of one role, which those of other warpgroups do not meet.
  class RoleScope {
  public:
    RoleScope(WgmmaGroups &groups, std::size_t role)
        : groups_(groups), saved_(groups.role_) {
      groups.role_ = role;
    }
    ~RoleScope() { groups_.role_ = saved_; }
    RoleScope(const RoleScope &) = delete;

  private:
    WgmmaGroups &groups_;
    std::optional<std::size_t> saved_;
  };
};

} // namespace kiln
