// Arrays that begin at a cache line, so that no vector of whole lanes is read across two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

namespace quantgate {

template <class T>
class AlignedArray {
public:
    // Of zeros.
    explicit AlignedArray(int64_t size) : numbers_(static_cast<T*>(::operator new(size * sizeof(T), LINE))) {
        std::fill_n(numbers_.get(), size, T{});
    }

    T* data() const { return numbers_.get(); }

private:
    static constexpr std::align_val_t LINE{64};

    struct Free {
        void operator()(T* numbers) const { ::operator delete(numbers, LINE); }
    };

    std::unique_ptr<T[], Free> numbers_;
};

}  // namespace quantgate
