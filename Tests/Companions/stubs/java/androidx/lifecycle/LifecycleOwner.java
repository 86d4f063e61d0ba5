package androidx.lifecycle;

/** A stub of androidx.lifecycle. */
public interface LifecycleOwner {
    Lifecycle getLifecycle();
}
