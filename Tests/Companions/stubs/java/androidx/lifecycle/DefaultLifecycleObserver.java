package androidx.lifecycle;

/** A stub of androidx.lifecycle. */
public interface DefaultLifecycleObserver {
    default void onStart(LifecycleOwner owner) {}
    default void onStop(LifecycleOwner owner) {}
}
