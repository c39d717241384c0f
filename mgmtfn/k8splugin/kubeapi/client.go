package kubeapi

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Client reads and writes objects of the groups core/v1, discovery.k8s.io/v1 and
// networking.k8s.io/v1.
type Client struct {
	groups map[schema.GroupVersion]*rest.RESTClient
}

// NewClient makes a client. It does not connect yet.
func NewClient(cfg *rest.Config) (*Client, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(known).WithoutConversion()
	c := &Client{groups: map[schema.GroupVersion]*rest.RESTClient{}}
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion} {
		own := rest.CopyConfig(cfg)
		own.GroupVersion, own.NegotiatedSerializer = &gv, codecs
		own.AcceptContentTypes, own.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
		own.APIPath = "/apis"
		if gv.Group == "" {
			own.APIPath = "/api"
		}
		client, err := rest.RESTClientFor(own)
		if err != nil {
			return nil, fmt.Errorf("client of %s: %w", gv, err)
		}
		c.groups[gv] = client
	}
	return c, nil
}

// Core is the client of core/v1.
func (c *Client) Core() rest.Interface { return c.groups[corev1.SchemeGroupVersion] }

// Services lists and watches the Services of all namespaces.
func (c *Client) Services() cache.ListerWatcher { return c.all(corev1.SchemeGroupVersion, "services") }

// EndpointSlices lists and watches the EndpointSlices of all namespaces.
func (c *Client) EndpointSlices() cache.ListerWatcher {
	return c.all(discoveryv1.SchemeGroupVersion, "endpointslices")
}

// Nodes lists and watches the Nodes.
func (c *Client) Nodes() cache.ListerWatcher { return c.all(corev1.SchemeGroupVersion, "nodes") }

// Namespaces lists and watches the Namespaces.
func (c *Client) Namespaces() cache.ListerWatcher {
	return c.all(corev1.SchemeGroupVersion, "namespaces")
}

// Pods lists and watches the pods of all namespaces.
func (c *Client) Pods() cache.ListerWatcher { return c.all(corev1.SchemeGroupVersion, "pods") }

// NetworkPolicies lists and watches the NetworkPolicies of all namespaces.
func (c *Client) NetworkPolicies() cache.ListerWatcher {
	return c.all(networkingv1.SchemeGroupVersion, "networkpolicies")
}

func (c *Client) all(gv schema.GroupVersion, resource string) cache.ListerWatcher {
	return cache.NewListWatchFromClient(c.groups[gv], resource, metav1.NamespaceAll, fields.Everything())
}
