"""Kubernetes objects -> facts: Kueue Workloads, KAI PodGroups, Pods and Nodes, as the API prints them."""
