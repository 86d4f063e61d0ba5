package androidx.lifecycle;

import java.util.ArrayList;
import java.util.List;

/** A stub of androidx.lifecycle, which the test moves. An observer that comes later is told of the present state. */
public class Lifecycle {
    private final LifecycleOwner owner;
    private final List<DefaultLifecycleObserver> observers = new ArrayList<>();
    private boolean isStarted = true;

    Lifecycle(LifecycleOwner owner) {
        this.owner = owner;
    }

    public void addObserver(DefaultLifecycleObserver observer) {
        observers.add(observer);
        if (isStarted) observer.onStart(owner);
    }

    public void removeObserver(DefaultLifecycleObserver observer) {
        observers.remove(observer);
    }

    /** The test's: the app comes to the screen, or leaves it. */
    public void move(boolean isStarted) {
        this.isStarted = isStarted;
        for (DefaultLifecycleObserver observer : new ArrayList<>(observers)) {
            if (isStarted) observer.onStart(owner); else observer.onStop(owner);
        }
    }
}
